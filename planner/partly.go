package planner

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Partly returns whether the plan of r fits, and its step time, if a share of the layers of each stage is fully
// recomputed, in (0, 1), and the others not at all. There are no fixes. The first layers of a stage recompute. Their
// backward pass is the last, when the activations of the others are freed. So time and kept activations are between those
// of a plan without and with full recomputation, and the working memory is that of a plan without. Source:
// --recompute-method block of Megatron-LM (megatron/core/transformer/transformer_block.py).
func (pl *Planner) Partly(ctx context.Context, r Request, share float64) (FitReport, error) {
	var of [2]FitReport
	for i, mode := range []spec.Recompute{spec.RecomputeNone, spec.RecomputeFull} {
		plan, err := *r.Plan, error(nil)
		plan.Recompute = mode
		at := r
		at.Plan = &plan
		if of[i], err = pl.fitOf(ctx, at); err != nil {
			return FitReport{}, err
		}
	}
	out, full := of[0], &of[1]
	out.Config.Plan.Recompute = r.Plan.Recompute
	between := func(a, b float64) float64 { return (1-share)*a + share*b }
	rate := func(a, b float64) float64 { return 1 / between(1/a, 1/b) } // 0 if one is
	p, q := &out.Prediction, &full.Prediction
	p.Throughput, p.Lo, p.Hi = rate(p.Throughput, q.Throughput), rate(p.Lo, q.Lo), rate(p.Hi, q.Hi)
	out.CostPerSample = between(out.CostPerSample, full.CostPerSample)
	out.Memory.Activations = between(out.Memory.Activations, full.Memory.Activations)
	out.Memory.Overhead = between(out.Memory.Overhead, full.Memory.Overhead)
	out.Memory.SetMemory(p)
	if out.Fits || out.Budget <= 0 {
		return out, nil
	}
	if out.Memory.Total() <= out.Budget {
		out.Fits, out.Why, out.Verdict = true, "", memory.Fits
		return out, nil
	}
	out.Why = out.Memory.Misfit(out.Budget, out.limit)
	if v := out.Memory.Verdict(out.limit); v == memory.Unsure {
		out.Verdict = v
	}
	return out, nil
}
