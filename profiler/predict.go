package profiler

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Predicted is the prediction of a point before it is measured.
type Predicted struct {
	Config     spec.Config
	Prediction spec.Prediction
	Allocated  float64 // bytes of tensors in Prediction.MemoryBytes, 0 = not predicted
	// Err is why there is no prediction.
	Err error
}

// Predict returns predictions of the open points of the run in canonical order, and the number of usable rows behind them:
// by the family fitted to the rows of Options, or without any, by the family unfitted. A family that needs rows for that
// has no prediction of a model without rows.
func Predict(ctx context.Context, c Campaign, o Options) (out []Predicted, rows int, err error) {
	r, err := newRun(ctx, c, o)
	if err != nil {
		return nil, 0, err
	}
	by := map[spec.Key]perfmodel.Fitted{}
	for _, g := range r.groups {
		fitted := r.fit(ctx, g)
		if fitted == nil {
			fitted = o.Family.Unfitted
		}
		for _, k := range g.keys {
			by[k.key] = fitted
			rows += k.usable
		}
	}
	for i := range r.points {
		if !r.open(i) && !r.pending(i) {
			continue
		}
		p := Predicted{Config: r.points[i].Config, Err: perfmodel.ErrTooFewPoints}
		if fitted := by[p.Config.Key()]; fitted != nil {
			p.Prediction, p.Err = fitted.Predict(ctx, p.Config)
			if e, err := memory.Of(fitted, memory.Shipped(), p.Config); err == nil && p.Prediction.MemoryBytes > 0 {
				p.Allocated = e.Measured(p.Config.Plan, stack.Allocated)
			}
		}
		out = append(out, p)
	}
	return out, rows, ctx.Err()
}
