package planner

import (
	"context"
	"hash/maphash"
	"sync/atomic"

	"github.com/pacer-ml/pacer/perfmodel"
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
	st, err := pl.fixedSite(&out.Config)
	if err != nil {
		return out, false
	}
	b := st.memory.Plan(plan)
	if b.HostBytes > 0 {
		return out, false
	}
	if st.predict != nil {
		out.Prediction, err = st.predict(plan)
	} else {
		out.Prediction, err = pl.p.Predict(ctx, out.Config)
	}
	if err != nil {
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
		out.Verdict, _ = st.memory.Open(&out.Config, &b, "")
		out.Why = memory.Misfit(b.Total(), budget, r.Accelerator.MemBytes) + ": " + b.String()
	case budget > 0 && b.Total() > 0:
		out.Verdict = memory.Fits
	}
	return out, true
}

// fixedSite is what fixed plans of one model on the same devices share. It is immutable.
type fixedSite struct {
	config  spec.Config                              // Plan is zero
	predict func(spec.Plan) (spec.Prediction, error) // nil where the predictor is no perfmodel.Preparer
	memory  memory.Estimator
}

// fixedSites caches opened sites, one per slot.
type fixedSites [1 << 8]atomic.Pointer[fixedSite]

var slotSeed = maphash.MakeSeed()

// slot returns the slot of c. Sites that differ in other fields only share it.
func (s *fixedSites) slot(c *spec.Config) *atomic.Pointer[fixedSite] {
	h := maphash.Comparable(slotSeed, struct {
		model, accelerator, devices, framework string
		seq                                    int
	}{c.Model.Name, c.Accelerator.Name, c.Shape.Devices, c.Framework, c.SeqLen})
	return &s[h%uint64(len(s))]
}

// fixedSite returns the site of c, and opens it if it is not cached.
func (pl *Planner) fixedSite(c *spec.Config) (*fixedSite, error) {
	slot := pl.fixed.slot(c)
	config := *c
	config.Plan = spec.Plan{}
	if st := slot.Load(); st != nil && st.config == config {
		return st, nil
	}
	e, err := pl.Memory(config)
	if err != nil {
		return nil, err
	}
	st := &fixedSite{config: config, memory: e}
	if p, ok := pl.p.(perfmodel.Preparer); ok {
		if st.predict, err = p.Prepare(config); err != nil {
			return nil, err
		}
	}
	slot.Store(st)
	return st, nil
}
