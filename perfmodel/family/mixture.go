package family

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// mixture is what is fitted to one key: the calibrated physics, and forms that
// know less of it and ask more of the rows. The weight of each is how well it
// predicts the rows without seeing them:
//
//	w ∝ exp(Σ ln p(row i | the other rows, form)),   ln T = Σ w·ln T_form
//
// Source: Yao, Vehtari, Simpson and Gelman, "Using Stacking to Average Bayesian
// Predictive Distributions", Bayesian Analysis 2018, section 3.3 (pseudo-BMA).
type mixture struct {
	physics, byRubick, byOpaque float64 // weights, 1 together
	rubick                      *rubickModel
	opaque                      *opaqueFitted
	rows                        []spec.Measurement // opaque was fitted to
}

// mixFrom is how many rows of a job it takes to tell forms apart.
const mixFrom = 5

// mix fits the other forms to the rows of one key; nil where physics is all
// there is to say.
func (h *Hybrid) mix(ctx context.Context, c *calibration, key spec.Key, rows []spec.Measurement) (*mixture, error) {
	m := &mixture{}
	physics := h.physicsDensity(c, key, len(rows))
	shapeless := opaqueJob(&rows[0].Config)
	if rows[0].Config.Model.HasShape() && rows[0].Config.Seq() == 0 {
		return nil, nil // times of samples of unknown length do not compare
	}
	byOpaque, byRubick := math.Inf(-1), math.Inf(-1)
	var err error
	if shapeless {
		if byOpaque, err = m.fitOpaque(h.prior, rows); err != nil {
			return nil, err
		}
	}
	if len(rows) >= mixFrom || math.IsInf(physics, -1) && !shapeless {
		if byRubick, err = m.fitRubick(ctx, rows); err != nil {
			return nil, err
		}
	}
	if m.rubick == nil && m.opaque == nil {
		return nil, nil
	}
	m.weigh(physics, byRubick, byOpaque)
	return m, nil
}

// weigh turns log densities into weights.
func (m *mixture) weigh(physics, byRubick, byOpaque float64) {
	most := max(physics, byRubick, byOpaque)
	a, b, c := math.Exp(physics-most), math.Exp(byRubick-most), math.Exp(byOpaque-most)
	m.physics, m.byRubick, m.byOpaque = a/(a+b+c), b/(a+b+c), c/(a+b+c)
}

// physicsDensity is the log density of n rows of key as the calibrated physics
// predicts them unseen; -Inf where it does not cover them all.
func (h *Hybrid) physicsDensity(c *calibration, key spec.Key, n int) float64 {
	var e, sd []float64
	for i := range c.rows {
		if c.rows[i].Config.Key() == key {
			e, sd = append(e, h.base.left[i]), append(sd, h.base.leftSD[i])
		}
	}
	if len(e) < n {
		return math.Inf(-1)
	}
	return density(e, sd, n)
}

// density is the log density of n rows of which some left-out errors are known.
func density(e, sd []float64, n int) float64 {
	sum, known := 0.0, 0
	for i := range e {
		if math.IsNaN(e[i]) {
			continue
		}
		sum += logStudent(e[i], sd[i])
		known++
	}
	if known == 0 {
		return math.Inf(-1)
	}
	return sum * float64(n) / float64(known)
}

// logStudent is the log density of e under a Student's t of four degrees of
// freedom and scale sd, but for a constant.
func logStudent(e, sd float64) float64 {
	return -math.Log(sd) - 2.5*math.Log1p(e*e/(4*sd*sd))
}

func (m *mixture) fitRubick(ctx context.Context, rows []spec.Measurement) (float64, error) {
	fitted, _, err := fitRubick(ctx, perfmodel.Rows(rows))
	if errors.Is(err, perfmodel.ErrTooFewPoints) || errors.Is(err, perfmodel.ErrNotCovered) {
		return math.Inf(-1), nil
	}
	if err != nil {
		return 0, err
	}
	m.rubick = fitted.(*rubickModel)
	e, sd := m.rubick.post.leftOut()
	return density(e, sd, len(rows)), nil
}

func (m *mixture) fitOpaque(p *Prior, rows []spec.Measurement) (float64, error) {
	fitted, err := p.opaque.fit(rows[0].Config, rows)
	if err != nil {
		return 0, err
	}
	m.opaque, m.rows = fitted, rows
	return density(fitted.left, fitted.leftSD, len(rows)), nil
}

// predict mixes what the forms that cover c say; physics says what the
// calibrated physics does. The variance is that of the mixture, with half
// widths standing for standard deviations.
func (m *mixture) predict(ctx context.Context, c *spec.Config, physics func() (spec.Prediction, error)) (spec.Prediction, error) {
	var parts []spec.Prediction
	var weights []float64
	add := func(weight float64, ask func() (spec.Prediction, error)) error {
		if weight < 1e-6 {
			return nil
		}
		p, err := ask()
		if errors.Is(err, perfmodel.ErrNotCovered) {
			return nil
		}
		if err == nil {
			parts, weights = append(parts, p), append(weights, weight)
		}
		return err
	}
	err := errors.Join(
		add(m.physics, physics),
		add(m.byRubick, func() (spec.Prediction, error) { return m.rubick.Predict(ctx, *c) }),
		add(m.byOpaque, func() (spec.Prediction, error) { return m.opaque.prediction(c) }))
	if err != nil {
		return spec.Prediction{}, err
	}
	if len(parts) == 0 {
		return physics()
	}
	return blend(parts, weights), nil
}

// prediction is predict as others give it.
func (f *opaqueFitted) prediction(c *spec.Config) (spec.Prediction, error) {
	mean, sd, err := f.predict(c)
	if err != nil {
		return spec.Prediction{}, err
	}
	thr, spread := float64(c.Plan.GlobalBatch())*math.Exp(-mean), math.Exp(normal90*sd)
	out := spec.Prediction{Throughput: thr, Lo: thr / spread, Hi: thr * spread, By: "hybrid"}
	if !(out.Lo > 0) || math.IsInf(out.Hi, 0) {
		return spec.Prediction{}, fmt.Errorf("hybrid: %s has no finite step time: %w", c.Plan, perfmodel.ErrNotCovered)
	}
	return out, nil
}

// normal90 is half the width of a normal distribution's middle nine tenths.
const normal90 = 1.645

// blend mixes predictions of one configuration in log time. Warnings and memory
// are those of the heaviest that has any.
func blend(parts []spec.Prediction, weights []float64) spec.Prediction {
	total, mean := 0.0, 0.0
	for _, w := range weights {
		total += w
	}
	heaviest := 0
	for i, p := range parts {
		mean += weights[i] / total * math.Log(p.Throughput)
		if weights[i] > weights[heaviest] {
			heaviest = i
		}
	}
	variance := 0.0
	for i, p := range parts {
		half, apart := math.Log(p.Hi/p.Throughput), math.Log(p.Throughput)-mean
		variance += weights[i] / total * (half*half + apart*apart)
	}
	thr, spread := math.Exp(mean), math.Exp(math.Sqrt(variance))
	out := spec.Prediction{Throughput: thr, Lo: thr / spread, Hi: thr * spread, By: "hybrid", Warnings: parts[heaviest].Warnings}
	for _, p := range parts {
		out.MemoryBytes = max(out.MemoryBytes, p.MemoryBytes)
	}
	return out
}

// mixtureRecord is a mixture on disk.
type mixtureRecord struct {
	Key     spec.Key    `json:"key"`
	Weights [3]float64  `json:"weights"` // physics, rubick, opaque
	Rubick  []byte      `json:"rubick,omitempty"`
	Opaque  []opaqueRow `json:"opaque,omitempty"`
}

// opaqueRow is a row an opaque form was fitted to.
type opaqueRow struct {
	Config spec.Config `json:"config"`
	Sec    float64     `json:"sec"`
}

func (m *mixture) record(key spec.Key) (r mixtureRecord, err error) {
	r = mixtureRecord{Key: key, Weights: [3]float64{m.physics, m.byRubick, m.byOpaque}}
	if m.rubick != nil {
		if r.Rubick, err = m.rubick.MarshalBinary(); err != nil {
			return r, err
		}
	}
	for _, row := range m.rows {
		r.Opaque = append(r.Opaque, opaqueRow{row.Config, row.MedianStepSec()})
	}
	return r, nil
}

func (p *Prior) loadMixture(r *mixtureRecord) (*mixture, error) {
	m := &mixture{physics: r.Weights[0], byRubick: r.Weights[1], byOpaque: r.Weights[2]}
	for _, w := range r.Weights {
		if !(w >= 0 && w <= 1) {
			return nil, fmt.Errorf("a weight of %g is not in 0..1", w)
		}
	}
	if m.byRubick > 0 {
		fitted, err := loadRubick(r.Rubick)
		if err != nil {
			return nil, err
		}
		m.rubick = fitted.(*rubickModel)
	}
	if m.byOpaque > 0 {
		if len(r.Opaque) == 0 {
			return nil, errors.New("no rows of a form that was fitted")
		}
		for _, row := range r.Opaque {
			if !(row.Sec > 0) || math.IsInf(row.Sec, 0) {
				return nil, fmt.Errorf("a row of %g s", row.Sec)
			}
			m.rows = append(m.rows, spec.Measurement{Config: row.Config, Outcome: spec.OK, StepSec: []float64{row.Sec}})
		}
		if _, err := m.fitOpaque(p, m.rows); err != nil {
			return nil, err
		}
	}
	return m, nil
}
