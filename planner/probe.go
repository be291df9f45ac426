package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Correlated is an optional interface of predictors that know which errors their
// predictions share.
type Correlated interface {
	// LogCovariance returns the covariance of the errors of ln(throughput), row
	// and column i being cs[i]. The caller owns the matrix and may change it; cs
	// is only read. The error wraps perfmodel.ErrNotCovered where the covariance is
	// unknown; errors then count as independent. Any other error ends the call.
	LogCovariance(ctx context.Context, cs []spec.Config) (*mat.SymDense, error)
}

// Probe is a measurement that may change which plan is chosen.
type Probe struct {
	Choice Choice
	// Gain is the expected rise of ln(throughput) of the chosen plan after this
	// probe and those before it.
	Gain float64
}

// probeNoise is the standard deviation of ln(step time) between repeats.
const probeNoise = 0.04

// maxProbeCandidates is how many of the best candidates are compared. Candidates
// further down hardly ever have a significant gain.
const maxProbeCandidates = 256

// Probes returns up to k measurements with the highest expected gain for r, the
// highest first, each given those before it. Only plans predicted to fit are
// considered. Under objective MinDevices they are plans of the number of devices
// that Best returns. Predictions without intervals have no probes. Errors of a
// predictor that is not Correlated count as independent. See knowledgeGradient.
func (pl *Planner) Probes(ctx context.Context, r Request, k int) ([]Probe, error) {
	if k < 1 {
		return nil, fmt.Errorf("planner: %d probes, want at least 1", k)
	}
	r, field, err := pl.probeCandidates(ctx, r)
	if err != nil {
		return nil, err
	}
	cov, err := pl.covariance(ctx, field)
	if err != nil {
		return nil, err
	}
	mean := make([]float64, len(field))
	for i := range field {
		mean[i] = r.logScore(&field[i])
	}
	var out []Probe
	known := 0.0
	for len(out) < k {
		i, gain := bestProbe(mean, cov)
		if !(gain > 1e-6) {
			break
		}
		known += gain
		out = append(out, Probe{Choice: field[i], Gain: known})
		condition(cov, i)
	}
	return out, nil
}

// probeCandidates returns the best choices of r that fit, at least one, and the normal
// request for their scores at the median.
func (pl *Planner) probeCandidates(ctx context.Context, r Request) (Request, []Choice, error) {
	if r.Objective == MinDevices {
		best, err := pl.Best(ctx, r)
		if err != nil {
			return r, nil, err
		}
		p := &best.Config.Plan
		if r, err = r.normal(); err != nil {
			return r, nil, err
		}
		r = r.at(p.Devices(), p.GlobalBatch())
	}
	r.Top = maxProbeCandidates
	ranking, err := pl.Rank(ctx, r)
	if err != nil {
		return r, nil, err
	}
	if ranking.Fitting == 0 {
		_, err := pl.Best(ctx, r) // explains why
		return r, nil, cmp.Or(err, ErrInfeasible)
	}
	r, err = r.normal()
	r.Risk = 0
	return r, ranking.Choices[:min(ranking.Fitting, maxProbeCandidates)], err
}

// logScore is the logarithm of a choice's score under the objective.
func (r *Request) logScore(c *Choice) float64 {
	w, _ := r.score(c.Prediction.Throughput, c.Config.Plan.Devices(), c.Config.Plan.GlobalBatch())
	return math.Log(w)
}

// covariance returns the covariance of the errors of ln(throughput) of choices.
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

// bestProbe returns the candidate with the highest knowledge gradient, and that
// gradient.
func bestProbe(mean []float64, cov *mat.SymDense) (best int, gain float64) {
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

// condition updates cov, in place, for a measurement of candidate i.
func condition(cov *mat.SymDense, i int) {
	n := cov.SymmetricDim()
	row := make([]float64, n)
	for j := range row {
		row[j] = cov.At(i, j)
	}
	cov.SymRankOne(cov, -1/(row[i]+probeNoise*probeNoise), mat.NewVecDense(n, row))
}
