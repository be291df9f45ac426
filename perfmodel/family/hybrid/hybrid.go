package hybrid

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/family/internal/shapeless"
	"github.com/pacer-ml/pacer/perfmodel/family/rubick"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Family returns the family "hybrid" with prior p. Its Fit conditions p on rows. Fit and Gain of the same rows, one after
// the other, share one calibration.
func (p *Prior) Family() perfmodel.Family {
	own := *p
	own.last, p = &lastFit{}, &own
	return perfmodel.Family{
		Name:      "hybrid",
		Doc:       "the analytic model calibrated hierarchically (all, framework, accelerator) and mixed with fitted models; needs no measurement, improves with each",
		Fit:       p.fit,
		Alone:     true,
		Condition: p.Condition,
		Load:      p.load,
		Choose:    rubick.Choose,
		Gain:      p.gain,
		Unfitted:  p.unfitted(),
	}
}

// Model predicts with the analytic model calibrated to measured rows. For a (model, accelerator) key with
// enough rows, it mixes in family rubick, which assumes less and needs more rows (see mixture). Its methods are
// safe for concurrent use.
type Model struct {
	prior         *Prior
	base          *calibrated
	mixed         map[spec.Key]*mixture
	shapeless     map[shapeless.Key]*shapeless.Fitted
	shapelessRows []spec.Measurement // rows that shapeless was fitted to
	outliers      []perfmodel.Outlier
	drifts        []perfmodel.Drift
}

// Outliers implements perfmodel.Doubter, for rows of models with a shape. A loaded Model has none.
func (h *Model) Outliers() []perfmodel.Outlier { return h.outliers }

// Drifts implements perfmodel.Drifter, for rows of models with a shape. A loaded Model has none.
func (h *Model) Drifts() []perfmodel.Drift { return h.drifts }

// Condition calibrates the prior to rows of any models, accelerators and frameworks. Rows that are not usable
// or not covered count only with their recorded memory. Without other rows the result is the prior. The error
// is that of ctx, or wraps perfmodel.ErrNotFinite. p does not change.
func (p *Prior) Condition(ctx context.Context, rows []spec.Measurement) (perfmodel.Fitted, error) {
	usable := slices.DeleteFunc(slices.Clone(rows), func(m spec.Measurement) bool { return !perfmodel.UsableOrAlone(m) })
	h, err := p.condition(ctx, usable)
	if err != nil {
		return nil, err
	}
	return h, h.conditionMemory(ctx, rows)
}

// condition is Condition without memory, for usable rows.
func (p *Prior) condition(ctx context.Context, rows []spec.Measurement) (*Model, error) {
	if p.last == nil {
		return p.conditionAnew(ctx, rows)
	}
	return p.last.get(rows, func() (*Model, error) { return p.conditionAnew(ctx, rows) })
}

func (p *Prior) conditionAnew(ctx context.Context, rows []spec.Measurement) (*Model, error) {
	shaped, others := byShape(rows)
	f, err := p.follow(ctx, shaped)
	if err != nil {
		return nil, err
	}
	h := p.hybrid(f.base)
	h.outliers, h.drifts = f.base.outliers(f.fit.Rows), f.drifts()
	others = slices.DeleteFunc(others, func(m spec.Measurement) bool { return m.Config.Alone() })
	if err := h.fitShapeless(ctx, perfmodel.MergeRepeats(others)); err != nil {
		return nil, err
	}
	for key, of := range perfmodel.GroupByKey(f.current) {
		m, err := h.mix(ctx, f.fit, key, of)
		if err != nil {
			return nil, err
		}
		if m != nil {
			h.mixed[key] = m
		}
	}
	return h, nil
}

// conditionMemory fits the memory calibration to the recorded peaks of rows.
func (h *Model) conditionMemory(ctx context.Context, rows []spec.Measurement) error {
	mem, err := memory.Condition(ctx, h.prior.consts.Memory, rows)
	if err != nil {
		return fmt.Errorf("hybrid: memory: %w", err)
	}
	h.setMemory(mem)
	return nil
}

// setMemory sets a memory calibration for h only; the prior's physics is shared.
func (h *Model) setMemory(mem *memory.Calibration) {
	h.base.physics = h.base.physics.WithMemory(mem)
}

// fit implements Family.Fit.
func (p *Prior) fit(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	rows, left, err := oneKey(ctx, data)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	if len(rows) == 0 {
		return nil, perfmodel.Card{}, fmt.Errorf("hybrid: no usable row; without rows the family predicts with its prior: %w", perfmodel.ErrTooFewPoints)
	}
	h, err := p.condition(ctx, rows)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	if err := h.conditionMemory(ctx, rows); err != nil {
		return nil, perfmodel.Card{}, err
	}
	card, err := h.card(ctx, rows, left)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	return h, card, nil
}

// oneKey returns the usable rows of data and the number of rows left out. All rows must share one key.
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
		if !perfmodel.UsableOrAlone(m) {
			left++
			continue
		}
		rows = append(rows, m)
	}
	return rows, left, nil
}

// hybrid returns a Model with a calibration and without fits of single keys.
func (p *Prior) hybrid(base *calibrated) *Model {
	return &Model{prior: p, base: base, mixed: map[spec.Key]*mixture{}, shapeless: map[shapeless.Key]*shapeless.Fitted{}}
}

// Of implements perfmodel.Pool.
func (h *Model) Of(key spec.Key) (perfmodel.Fitted, perfmodel.Card) {
	out := h.prior.hybrid(h.base)
	card := perfmodel.Card{Key: key, Family: "hybrid", Params: map[string]perfmodel.Param{"weight of physics": {Value: 1, Unit: "1"}}}
	if m := h.mixed[key]; m != nil {
		out.mixed[key] = m
		card.Params["weight of physics"] = perfmodel.Param{Value: m.physics, Unit: "1"}
	}
	for k, f := range h.shapeless {
		if k.Key == key {
			out.shapeless[k] = f
		}
	}
	for _, m := range h.shapelessRows {
		if m.Config.Key() == key {
			out.shapelessRows = append(out.shapelessRows, m)
		}
	}
	h.base.params(key.Accelerator, card.Params)
	for _, d := range h.drifts {
		if d.Accelerator == key.Accelerator {
			out.drifts, card.Drifts = append(out.drifts, d), append(card.Drifts, d)
			card.Warnings = append(card.Warnings, d.String())
		}
	}
	for _, o := range h.outliers {
		if o.Row.Config.Key() == key {
			out.outliers = append(out.outliers, o)
			card.Warnings = append(card.Warnings, fmt.Sprintf("plan %s: %s: was it measured as recorded?", o.Row.Config.Plan, o))
		}
	}
	return out, card
}

// card returns the Card of a fit to the rows of one key. The error is that of ctx.
func (h *Model) card(ctx context.Context, rows []spec.Measurement, left int) (perfmodel.Card, error) {
	rows = perfmodel.MergeRepeats(rows)
	hash, err := perfmodel.HashRows(ctx, rows)
	if err != nil {
		return perfmodel.Card{}, err
	}
	_, c := h.Of(rows[0].Config.Key())
	c.NFit, c.NLeftOut, c.DataHash, c.Created = len(rows), left, hash, time.Now().UTC()
	return c, nil
}

// Predict implements perfmodel.Predictor.
func (h *Model) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	m := h.mixed[c.Key()]
	switch {
	case c.Alone(): // the other models know only whole steps
		return h.base.predict(&c)
	case h.isShapeless(&c):
		return h.predictShapeless(ctx, &c)
	case m != nil:
		return m.predict(ctx, &c, h.base.predict)
	}
	return h.base.predict(&c)
}

// isShapeless reports whether package shapeless predicts c.
func (h *Model) isShapeless(c *spec.Config) bool {
	return shapeless.Covers(c) && (h.mixed[c.Key()] == nil || c.Plan.ParamServers > 0)
}

// Prepare implements perfmodel.Preparer.
func (h *Model) Prepare(c spec.Config) (perfmodel.Prepared, error) {
	if (h.mixed[c.Key()] == nil || c.Alone()) && c.Model.HasShape() {
		return h.base.prepare(&c)
	}
	return perfmodel.PreparedFunc(func(p spec.Plan, seq int) (spec.Prediction, error) {
		of := c
		of.Plan, of.SeqLen = p, seq
		return h.Predict(context.Background(), of)
	}), nil
}

// Memory implements memory.Predictor, with the calibration to measured peaks.
func (h *Model) Memory(c spec.Config) (memory.Estimator, error) { return h.base.physics.Memory.For(c) }

// Explain returns the predicted step time of c split by cause. All parts are scaled by one factor so that they
// add up to the prediction. The error wraps perfmodel.ErrNotCovered.
func (h *Model) Explain(c spec.Config) (analytic.Parts, error) {
	parts, err := h.base.physics.Explain(&c)
	if err != nil {
		return analytic.Parts{}, err
	}
	p, err := h.Predict(context.Background(), c)
	if err != nil {
		return analytic.Parts{}, err
	}
	sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
	return parts.Scaled(sec / parts.Total()), nil
}

// StackWeights is Physics.StackWeights of the fitted rows.
func (h *Model) StackWeights(c spec.Config) (weight [stack.MaxChoices]float64, measured bool, err error) {
	return h.base.physics.StackWeights(&c)
}

func sortedKeys(m map[spec.Key]*mixture) []spec.Key {
	return slices.SortedFunc(maps.Keys(m), perfmodel.CompareKeys)
}
