package hybrid

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/family/rubick"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// mixture is the calibrated physics mixed with family rubick. The weights come from left-out predictions of the
// rows:
//
//	w ∝ exp(Σ ln p(row i | the other rows, form)),   ln T = Σ w·ln T_form
//
// Source: Yao, Vehtari, Simpson and Gelman, "Using Stacking to Average Bayesian
// Predictive Distributions", Bayesian Analysis 2018, section 3.3 (pseudo-BMA).
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
	fitted, _, err := rubick.FitRows(ctx, rows, left)
	if errors.Is(err, perfmodel.ErrTooFewPoints) || errors.Is(err, perfmodel.ErrNotCovered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &mixture{rubick: fitted}
	physics := h.physicsDensity(c, key, len(rows))
	e, sd := m.rubick.LeftOut()
	m.physics = 1 / (1 + math.Exp(density(e, sd, len(rows))-physics))
	return m, nil
}

// physicsDensity returns the log density of n rows of key under their left-out predictions by the calibrated
// physics, or -Inf if physics does not cover all of them.
func (h *Model) physicsDensity(c *analytic.Calibration, key spec.Key, n int) float64 {
	var e, sd []float64
	for i := range c.Rows {
		if c.Rows[i].Config.Key() == key {
			e, sd = append(e, h.base.left[i]), append(sd, h.base.leftSD[i])
		}
	}
	if len(e) < n {
		return math.Inf(-1)
	}
	return density(e, sd, n)
}

// density returns the log density of n rows, up to a constant, under a Student's t distribution with four
// degrees of freedom and scale sd. e holds the left-out errors of the fitted rows.
func density(e, sd []float64, n int) float64 {
	sum := 0.0
	for i := range e {
		sum -= math.Log(sd[i]) + 2.5*math.Log1p(e[i]*e[i]/(4*sd[i]*sd[i]))
	}
	return sum * float64(n) / float64(max(len(e), 1))
}

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
