package family

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func init() {
	register(Shipped().Family())
}

// Family returns the family "hybrid" over p: what Fit has of rows moves p as far
// as they can tell.
func (p *Prior) Family() perfmodel.Family {
	return perfmodel.Family{
		Name:     "hybrid",
		Doc:      "the analytic model calibrated hierarchically (all, framework, accelerator), mixed with fitted forms where rows allow; needs no measurement, gains from each",
		Fit:      p.fit,
		Load:     p.load,
		Choose:   chooseRubick,
		Gain:     gainRubick,
		Unfitted: &Hybrid{prior: p, base: p.uncalibrated()},
	}
}

// Hybrid predicts with the analytic model calibrated to measured rows, and for
// a (model, accelerator) with enough of them with a mixture of that and of forms
// that know less physics and ask more of the rows. The weight of each form is
// how well it predicts the rows without seeing them:
//
//	w ∝ exp(Σ ln p(row i | the other rows, form)),   ln T = Σ w·ln T_form
//
// Source: Yao, Vehtari, Simpson and Gelman, "Using Stacking to Average Bayesian
// Predictive Distributions", Bayesian Analysis 2018, section 3.3 (pseudo-BMA).
type Hybrid struct {
	prior *Prior
	base  *calibrated
	mixed map[spec.Key]*mixture
}

// mixture is what is fitted to one key beside the calibrated physics.
type mixture struct {
	physics float64 // weight of the calibrated physics
	rubick  *rubickModel
}

// Condition calibrates the prior to rows of any models, accelerators and
// frameworks. Of rows that are not usable or not covered only the memory they
// record counts; with none left the result is the prior.
func (p *Prior) Condition(ctx context.Context, rows []spec.Measurement) (perfmodel.Fitted, error) {
	usable := slices.DeleteFunc(slices.Clone(rows), func(m spec.Measurement) bool { return !perfmodel.Usable(m) })
	h, err := p.condition(ctx, perfmodel.MergeRepeats(usable))
	if err != nil {
		return nil, err
	}
	return h, h.remember(rows)
}

// condition is Condition of usable rows, each configuration once.
func (p *Prior) condition(ctx context.Context, rows []spec.Measurement) (*Hybrid, error) {
	c, err := newCalibration(ctx, rows)
	if err != nil {
		return nil, err
	}
	base, err := p.calibrate(c)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	h := &Hybrid{prior: p, base: base, mixed: map[spec.Key]*mixture{}}
	for key, of := range perfmodel.GroupByKey(rows) {
		m, err := h.mix(ctx, c, key, of)
		if err != nil {
			return nil, err
		}
		if m != nil {
			h.mixed[key] = m
		}
	}
	return h, nil
}

// remember moves what is believed of memory to the peaks that rows record.
func (h *Hybrid) remember(rows []spec.Measurement) error {
	mem, err := memory.Condition(h.prior.mem, rows)
	if err != nil {
		return fmt.Errorf("hybrid: memory: %w", err)
	}
	h.setMemory(mem)
	return nil
}

// setMemory gives h a calibration of its own; the prior's physics is shared.
func (h *Hybrid) setMemory(mem *memory.Calibration) {
	ph := *h.base.physics
	ph.mem = mem
	h.base.physics = &ph
}

// mixFrom is how many rows of a job it takes to tell forms apart, where physics
// covers any.
const mixFrom = 5

// mix fits the other forms to the rows of one key; nil where the physics is all
// there is to say.
func (h *Hybrid) mix(ctx context.Context, c *calibration, key spec.Key, rows []spec.Measurement) (*mixture, error) {
	fitted, _, err := fitRubick(ctx, perfmodel.Rows(rows))
	if errors.Is(err, perfmodel.ErrTooFewPoints) || errors.Is(err, perfmodel.ErrNotCovered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &mixture{rubick: fitted.(*rubickModel)}
	if len(m.rubick.rows) < mixFrom && len(c.rows) > 0 {
		return nil, nil
	}
	density := 0.0
	own := 0
	for i := range c.rows {
		if c.rows[i].Config.Key() == key {
			density += logNormal(h.base.left[i], h.base.leftSD[i])
			own++
		}
	}
	if own < len(m.rubick.rows) {
		return m, nil // rows the physics does not cover
	}
	rival := 0.0
	off, sd := m.rubick.post.leftOut()
	for i, e := range off {
		rival += logNormal(e, sd[i])
	}
	m.physics = 1 / (1 + math.Exp(rival-density))
	return m, nil
}

// logNormal is the log density of e under a normal distribution around 0, with
// heavier tails: a Student's t of four degrees of freedom, but for a constant.
func logNormal(e, sd float64) float64 {
	return -math.Log(sd) - 2.5*math.Log1p(e*e/(4*sd*sd))
}

// fit implements Family.Fit.
func (p *Prior) fit(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	rows, left, warnings, err := collectRubick(ctx, data)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	if len(rows) == 0 {
		return nil, perfmodel.Card{}, fmt.Errorf("hybrid: no usable row; without any the family predicts as it is: %w", perfmodel.ErrTooFewPoints)
	}
	h, err := p.condition(ctx, rows)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	if err := h.remember(rows); err != nil {
		return nil, perfmodel.Card{}, err
	}
	return h, h.card(rows, left, warnings), nil
}

// card describes a fit to the rows of one key. Its errors are left-out ones,
// linearised at the fit.
func (h *Hybrid) card(rows []spec.Measurement, left int, warnings []string) perfmodel.Card {
	key := rows[0].Config.Key()
	c := perfmodel.Card{Key: key, Family: "hybrid", NFit: len(rows), NLeftOut: left, Params: map[string]perfmodel.Param{},
		DataHash: perfmodel.HashRows(rows), Created: time.Now().UTC(), Warnings: warnings}
	c.Params["weight_of_physics"] = perfmodel.Param{Value: 1, Unit: "1"}
	if m := h.mixed[key]; m != nil {
		c.Params["weight_of_physics"] = perfmodel.Param{Value: m.physics, Unit: "1"}
	}
	h.base.params(c.Params)
	return c
}

// Predict implements perfmodel.Predictor.
func (h *Hybrid) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	m := h.mixed[c.Key()]
	if m == nil {
		return h.base.predict(&c)
	}
	rival, err := m.rubick.Predict(ctx, c)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return h.base.predict(&c)
	}
	if err != nil || m.physics == 0 {
		rival.By = "hybrid"
		return rival, err
	}
	physics, err := h.base.predict(&c)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		rival.By = "hybrid"
		return rival, nil
	}
	return blend(physics, rival, m.physics), err
}

// blend mixes two predictions of one configuration in log time; the variance is
// that of the mixture, half widths standing for standard deviations.
func blend(a, b spec.Prediction, weight float64) spec.Prediction {
	la, lb := math.Log(a.Throughput), math.Log(b.Throughput)
	ha, hb := math.Log(a.Hi/a.Throughput), math.Log(b.Hi/b.Throughput)
	mean := weight*la + (1-weight)*lb
	apart := la - lb
	half := math.Sqrt(weight*ha*ha + (1-weight)*hb*hb + weight*(1-weight)*apart*apart)
	thr := math.Exp(mean)
	out := a
	out.Throughput, out.Lo, out.Hi = thr, thr*math.Exp(-half), thr*math.Exp(half)
	if weight < 0.5 {
		out.Warnings = b.Warnings
	}
	return out
}

// Prepare implements perfmodel.Preparer.
func (h *Hybrid) Prepare(c spec.Config) (func(spec.Plan) (spec.Prediction, error), error) {
	if h.mixed[c.Key()] != nil {
		return func(p spec.Plan) (spec.Prediction, error) {
			of := c
			of.Plan = p
			return h.Predict(context.Background(), of)
		}, nil
	}
	return h.base.prepare(&c)
}

// Explain returns the predicted step time of c by cause. What is not physics
// scales every part alike, so that they add up to the prediction.
func (h *Hybrid) Explain(c spec.Config) (Parts, error) {
	parts, err := h.base.physics.explain(&c)
	if err != nil {
		return Parts{}, err
	}
	p, err := h.Predict(context.Background(), c)
	if err != nil {
		return Parts{}, err
	}
	sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
	return parts.scaled(sec / parts.Total()), nil
}

func sortedKeys(m map[spec.Key]*mixture) []spec.Key {
	return slices.SortedFunc(maps.Keys(m), perfmodel.CompareKeys)
}
