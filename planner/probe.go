package planner

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Correlated is an optional interface of predictors: what they get wrong
// together.
type Correlated interface {
	// LogCovariance returns the covariance of the errors of ln(throughput) of
	// the predictions of cs, cs by cs. The error wraps perfmodel.ErrNotCovered
	// where it cannot say.
	LogCovariance(ctx context.Context, cs []spec.Config) (*mat.SymDense, error)
}

// Probe is a measurement worth taking before deciding.
type Probe struct {
	Choice Choice
	// Gain is by how much ln(throughput) of the plan decided on is expected to
	// rise once this, and the probes before it, have been measured: the sum of
	// what each adds.
	Gain float64
}

// probeNoise is the standard deviation of ln(step time) between repeats.
const probeNoise = 0.04

// probeField is how many of the best candidates are weighed against each other:
// what is further down is hardly ever worth a look.
const probeField = 256

// Probes returns up to k measurements that would change the answer to r most,
// the most valuable first, each given those before it. Only plans predicted to
// fit are considered. Under objective MinDevices they are about the number of
// devices it gives: a faster plan there is further from missing the target.
// Without intervals there is nothing to learn, and none is returned; errors of a
// predictor that is not Correlated count as independent. See knowledgeGradient.
func (pl *Planner) Probes(ctx context.Context, r Request, k int) ([]Probe, error) {
	if k < 1 {
		return nil, fmt.Errorf("planner: %d probes, want at least 1", k)
	}
	if r.Objective == MinDevices {
		best, err := pl.Best(ctx, r)
		if err != nil {
			return nil, err
		}
		p := &best.Config.Plan
		if r, err = r.normal(); err != nil {
			return nil, err
		}
		r = r.at(p.Devices(), p.GlobalBatch())
	}
	r.Top = probeField
	rk, err := pl.Rank(ctx, r)
	if err != nil {
		return nil, err
	}
	field := rk.Choices[:min(rk.Fitting, probeField)]
	if len(field) == 0 {
		_, err := pl.Best(ctx, r)
		return nil, err
	}
	cov, err := pl.covariance(ctx, field)
	if err != nil {
		return nil, err
	}
	if r, err = r.normal(); err != nil {
		return nil, err
	}
	r.Risk = 0
	mean := make([]float64, len(field))
	for i := range field {
		mean[i] = r.logWorth(&field[i])
	}
	var out []Probe
	known := 0.0
	for len(out) < k {
		i, gain := mostValuable(mean, cov)
		if !(gain > 1e-6) {
			break
		}
		known += gain
		out = append(out, Probe{Choice: field[i], Gain: known})
		learn(cov, i)
	}
	return out, nil
}

// logWorth is the logarithm of what a choice is worth.
func (r *Request) logWorth(c *Choice) float64 {
	w, _ := r.worth(c.Prediction.Throughput, c.Config.Plan.Devices(), c.Config.Plan.GlobalBatch())
	return math.Log(w)
}

// covariance is that of the errors of ln(throughput) of the choices.
func (pl *Planner) covariance(ctx context.Context, field []Choice) (*mat.SymDense, error) {
	if p, ok := pl.p.(Correlated); ok {
		cs := make([]spec.Config, len(field))
		for i := range field {
			cs[i] = field[i].Config
		}
		cov, err := p.LogCovariance(ctx, cs)
		if !errors.Is(err, perfmodel.ErrNotCovered) {
			return cov, err
		}
	}
	cov := mat.NewSymDense(len(field), nil)
	for i := range field {
		sd := logSD(&field[i].Prediction)
		cov.SetSym(i, i, sd*sd)
	}
	return cov, nil
}

// mostValuable returns the candidate whose measurement raises the expected best
// most, and by how much.
func mostValuable(mean []float64, cov *mat.SymDense) (best int, gain float64) {
	shift := make([]float64, len(mean))
	for i := range mean {
		sd := math.Sqrt(cov.At(i, i) + probeNoise*probeNoise)
		for j := range shift {
			shift[j] = cov.At(i, j) / sd
		}
		if g := knowledgeGradient(mean, shift); g > gain {
			best, gain = i, g
		}
	}
	return best, gain
}

// learn conditions cov on a measurement of candidate i.
func learn(cov *mat.SymDense, i int) {
	n := cov.SymmetricDim()
	row := make([]float64, n)
	for j := range row {
		row[j] = cov.At(i, j)
	}
	cov.SymRankOne(cov, -1/(row[i]+probeNoise*probeNoise), mat.NewVecDense(n, row))
}
