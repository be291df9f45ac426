package family

import (
	"context"
	"fmt"
	"iter"
	"maps"
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
		Gain:     p.gain,
		Unfitted: p.unfitted(),
	}
}

// Hybrid predicts with the analytic model calibrated to measured rows, and for
// a (model, accelerator) with enough of them with a mixture of that and of forms
// that know less physics and ask more of the rows, see mixture.
type Hybrid struct {
	prior     *Prior
	base      *calibrated
	mixed     map[spec.Key]*mixture
	opaque    map[opaqueKey]*opaqueFitted
	shapeless []spec.Measurement // opaque was fitted to
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
	shaped, shapeless := byShape(rows)
	c, err := newCalibration(ctx, shaped)
	if err != nil {
		return nil, err
	}
	base, err := p.calibrate(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("hybrid: %w", err)
	}
	h := p.hybrid(base)
	if err := h.fitOpaque(shapeless); err != nil {
		return nil, err
	}
	for key, of := range perfmodel.GroupByKey(shaped) {
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

// fit implements Family.Fit.
func (p *Prior) fit(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	rows, left, err := oneKey(ctx, data)
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
	return h, h.card(rows, left), nil
}

// oneKey returns the usable rows of data, repeats merged, in canonical order,
// and how many were left out. All rows must share one key.
func oneKey(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (rows []spec.Measurement, left int, err error) {
	var key spec.Key
	for m, err := range data {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, 0, err
		}
		if k := m.Config.Key(); len(rows)+left > 0 && k != key {
			return nil, 0, fmt.Errorf("hybrid: rows of %s and of %s in one fit, want one model on one accelerator", key, k)
		} else {
			key = k
		}
		if !perfmodel.Usable(m) {
			left++
			continue
		}
		rows = append(rows, m)
	}
	return perfmodel.MergeRepeats(rows), left, nil
}

// hybrid is an empty Hybrid over a calibration.
func (p *Prior) hybrid(base *calibrated) *Hybrid {
	return &Hybrid{prior: p, base: base, mixed: map[spec.Key]*mixture{}, opaque: map[opaqueKey]*opaqueFitted{}}
}

// card describes a fit to the rows of one key. Its errors are left-out ones,
// linearised at the fit.
func (h *Hybrid) card(rows []spec.Measurement, left int) perfmodel.Card {
	key := rows[0].Config.Key()
	c := perfmodel.Card{Key: key, Family: "hybrid", NFit: len(rows), NLeftOut: left, Params: map[string]perfmodel.Param{},
		DataHash: perfmodel.HashRows(rows), Created: time.Now().UTC()}
	c.Params["weight of physics"] = perfmodel.Param{Value: 1, Unit: "1"}
	if m := h.mixed[key]; m != nil {
		c.Params["weight of physics"] = perfmodel.Param{Value: m.physics, Unit: "1"}
	}
	h.base.params(c.Params)
	return c
}

// Predict implements perfmodel.Predictor.
func (h *Hybrid) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	m := h.mixed[c.Key()]
	switch {
	case h.opaqueFor(&c):
		return h.predictOpaque(&c)
	case m != nil:
		return m.predict(ctx, &c, h.base.predict)
	}
	return h.base.predict(&c)
}

// opaqueFor reports whether c is left to the forms for jobs without a shape.
func (h *Hybrid) opaqueFor(c *spec.Config) bool {
	return opaqueJob(c) && (h.mixed[c.Key()] == nil || c.Plan.ParamServers > 0)
}

// Prepare implements perfmodel.Preparer.
func (h *Hybrid) Prepare(c spec.Config) (func(spec.Plan) (spec.Prediction, error), error) {
	if h.mixed[c.Key()] == nil && c.Model.HasShape() {
		return h.base.prepare(&c)
	}
	return func(p spec.Plan) (spec.Prediction, error) {
		of := c
		of.Plan = p
		return h.Predict(context.Background(), of)
	}, nil
}

// Memory returns the estimator of what plans keep on the devices of c, with what
// the measured peaks say: that of Predict's MemoryBytes.
func (h *Hybrid) Memory(c spec.Config) (memory.Estimator, error) { return h.base.physics.mem.For(c) }

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
