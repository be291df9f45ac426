package planner

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Fixed returns the one choice of a request that fixes plan and shape. It equals
// the answer of Rank and is faster for legal plans without offload.
func (pl *Planner) Fixed(ctx context.Context, r Request) (Choice, error) {
	if c, ok := pl.judgeFixed(ctx, &r); ok {
		return c, nil
	}
	ranking, err := pl.Rank(ctx, r)
	if err != nil {
		return Choice{}, err
	}
	return ranking.Choices[0], nil // a fixed plan and shape has one choice or an error
}

// judgeFixed judges a fixed plan without a search. ok is false where the plan is
// illegal, its memory unknown, or host memory in use; Rank then decides.
func (pl *Planner) judgeFixed(ctx context.Context, r *Request) (out Choice, ok bool) {
	if _, all := pl.o.Space.(Enumerate); !all || r.Plan == nil || r.Shape.Devices == "" || pl.o.Reserve > 0 || r.Validate() != nil {
		return out, false
	}
	if r.MinBatch > 0 || r.MinDevices > 0 || r.NoiseScale > 0 || r.TargetThroughput > 0 || r.Objective != "" {
		return out, false
	}
	plan := r.Plan.Normal()
	out.Config = spec.Config{Model: r.Model, SeqLen: r.SeqLen, Plan: plan, Accelerator: r.Accelerator, Shape: r.Shape, Link: r.Link, Framework: r.Framework}
	if plan.Devices() != r.Shape.Total() || CannotSplit(&r.Model, out.Config.Seq(), &plan) != "" || plan.Check(r.Model) != nil {
		return out, false
	}
	e, err := pl.Memory(out.Config)
	if err != nil {
		return out, false
	}
	b := e.Plan(plan)
	if b.HostBytes > 0 {
		return out, false
	}
	if out.Prediction, err = pl.p.Predict(ctx, out.Config); err != nil {
		return out, false
	}
	switch out.Prediction.MemoryBytes {
	case 0:
		out.Prediction.MemoryBytes = b.Total()
	case b.Total():
	default: // the predictor has its own memory model
		return out, false
	}
	r.setCosts(&out)
	budget := memory.Budget(r.Accelerator.MemBytes, b.LogSD)
	switch out.Fits = budget <= 0 || b.Total() <= budget; {
	case !out.Fits:
		out.Verdict, _ = e.Open(&out.Config, "")
		out.Why = memory.Misfit(b.Total(), budget, r.Accelerator.MemBytes) + ": " + b.String()
	case budget > 0 && b.Total() > 0:
		out.Verdict = memory.Fits
	}
	return out, true
}
