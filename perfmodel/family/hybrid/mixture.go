package hybrid

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/family/rubick"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// mixture is the calibrated physics mixed with family rubick: ln T = Σ w·ln T_form. The weights come from left-out
// predictions of the rows, see weigh.
type mixture struct {
	physics float64 // weight of the calibrated physics; rubick has the rest
	rubick  *rubick.Model
}

// mix fits rubick to the rows of one key. It returns nil if physics alone predicts the key.
func (h *Model) mix(ctx context.Context, c *analytic.Calibration, key spec.Key, rows []spec.Measurement) (*mixture, error) {
	if rows[0].Config.Model.HasShape() && rows[0].Config.Seq() == 0 {
		return nil, nil // step times are not comparable without tokens per sample
	}
	rows, left, _, err := rubick.Collect(ctx, perfmodel.Rows(rows))
	if err != nil {
		return nil, err
	}
	fitted, kept, err := rubick.FitRows(ctx, rows, left)
	if errors.Is(err, perfmodel.ErrTooFewPoints) || errors.Is(err, perfmodel.ErrNotCovered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &mixture{rubick: fitted}
	row := rowsOfKey(c, key)
	for i := range rows {
		if _, ok := row[perfmodel.Canonical(rows[i].Config)]; !ok {
			return m, nil // physics does not cover all rows
		}
	}
	e, sd := fitted.LeftOut()
	if e == nil {
		return nil, nil
	}
	gain := make([]float64, len(e))
	for k := range e {
		i := row[perfmodel.Canonical(kept[k].Config)]
		gain[k] = logDensity(h.base.left[i], h.base.leftSD[i]) - logDensity(e[k], sd[k])
	}
	m.physics = weigh(gain, len(rows))
	return m, nil
}

// rowsOfKey returns the rows of c that have a key, by configuration. Of a configuration that was also measured before a
// change of its site it has the current row, which comes first in c.
func rowsOfKey(c *analytic.Calibration, key spec.Key) map[spec.Config]int {
	out := map[spec.Config]int{}
	for i := range c.Rows {
		of := &c.Rows[i].Config
		if of.Key() != key {
			continue
		}
		is := perfmodel.Canonical(*of)
		if _, ok := out[is]; !ok {
			out[is] = i
		}
	}
	return out
}

// weigh returns the weight of the first of two forms, given the differences of the log densities of some of n rows,
// each predicted from the others: the expectation of
//
//	1/(1 + exp(-n·Σ aᵢ·gainᵢ))
//
// for shares a that are uniformly distributed (the Bayesian bootstrap), so that one row that one of the forms misses
// does not decide alone. The sum is taken as normally distributed. Sources: Yao, Vehtari, Simpson and Gelman, "Using
// Stacking to Average Bayesian Predictive Distributions", Bayesian Analysis 2018, section 3.4 (pseudo-BMA+); MacKay,
// "The Evidence Framework Applied to Classification Networks", Neural Computation 1992, equation 10 (the expectation).
func weigh(gain []float64, n int) float64 {
	mean, off := stat.Mean(gain, nil), 0.0
	for _, g := range gain {
		off += (g - mean) * (g - mean)
	}
	all, m := float64(n), float64(len(gain))
	variance := all * all * off / (m * (m + 1))
	return 1 / (1 + math.Exp(-all*mean/math.Sqrt(1+math.Pi*variance/8)))
}

// logDensity returns the log density of a row, up to a constant, under a Student's t distribution with four degrees
// of freedom and scale sd, at e from its center.
func logDensity(e, sd float64) float64 { return -math.Log(sd) - 2.5*math.Log1p(e*e/(4*sd*sd)) }

// predict returns the mixture of both predictions, or the only one that covers c.
func (m *mixture) predict(ctx context.Context, c *spec.Config, physics func(*spec.Config) (spec.Prediction, error)) (spec.Prediction, error) {
	b, err := m.rubick.Predict(ctx, *c)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return physics(c)
	}
	if err != nil {
		return spec.Prediction{}, err
	}
	a, err := physics(c)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		b.By = "hybrid"
		return b, nil
	}
	if err != nil {
		return spec.Prediction{}, err
	}
	return blend(a, b, m.physics), nil
}

// blend mixes predictions of one configuration in log time: a with weight, b with 1-weight. The variance is
// that of the mixture of two normal distributions. Warnings are those of the prediction with more weight.
func blend(a, b spec.Prediction, weight float64) spec.Prediction {
	la, lb := math.Log(a.Throughput), math.Log(b.Throughput)
	ha, hb := math.Log(a.Hi/a.Throughput), math.Log(b.Hi/b.Throughput)
	apart := stats.Normal90 * (la - lb)
	half := math.Sqrt(weight*ha*ha + (1-weight)*hb*hb + weight*(1-weight)*apart*apart)
	out := a
	out.Throughput = math.Exp(weight*la + (1-weight)*lb)
	out.Lo, out.Hi = out.Throughput*math.Exp(-half), out.Throughput*math.Exp(half)
	if weight < 0.5 {
		out.Warnings = b.Warnings
	}
	return out
}

// mixtureRecord is the stored form of a mixture.
type mixtureRecord struct {
	Key     spec.Key `json:"key"`
	Physics float64  `json:"physics"`
	Rubick  []byte   `json:"rubick"`
}

func (m *mixture) record(key spec.Key) (mixtureRecord, error) {
	b, err := m.rubick.MarshalBinary()
	return mixtureRecord{Key: key, Physics: m.physics, Rubick: b}, err
}

func (r *mixtureRecord) load() (*mixture, error) {
	fitted, err := rubick.Load(r.Rubick)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %s: %w", r.Key, err)
	}
	if !(r.Physics >= 0 && r.Physics <= 1) {
		return nil, fmt.Errorf("hybrid: %s: the weight of physics is %g, want 0..1", r.Key, r.Physics)
	}
	return &mixture{physics: r.Physics, rubick: fitted.(*rubick.Model)}, nil
}
