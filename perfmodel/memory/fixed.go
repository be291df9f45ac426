package memory

import (
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Fixed estimates the memory of one plan for samples of many lengths. It is safe for concurrent use.
type Fixed struct {
	e  *Estimator
	on []fixedOn // the choices of stacks

	once   sync.Once
	others []*Fixed // alternatives to the plan; set by once
}

// fixedOn is a plan on a choice of stacks.
type fixedOn struct {
	weight  float64
	variant *variant
	plan    spec.Plan     // normal
	stages  []stageStates // candidates for the fullest
}

// Fix fixes the plan. e must not change.
func (e *Estimator) Fix(p spec.Plan) *Fixed {
	out := &Fixed{e: e}
	normal := p.Normal()
	one := *e
	add := func(w float64, v *variant) {
		on := fixedOn{weight: w, variant: v, plan: normal}
		one.apply(&on.plan)
		stages, n := one.fullestStages(&on.plan)
		for _, stage := range stages[:n] {
			on.stages = append(on.stages, one.statesOf(&on.plan, stage))
		}
		out.on = append(out.on, on)
	}
	if e.rest == nil {
		add(1, e.variant)
		return out
	}
	one.kept = &keptOwned{}
	for i, w := range &e.of.Weight[stack.UseOf(&normal)] {
		if w > 0 {
			one.variant = &e.rest[i]
			add(w, &e.rest[i])
		}
	}
	return out
}

// At returns AtSeq(seq).Plan of the plan.
func (f *Fixed) At(seq int) Breakdown {
	one := f.e.AtSeq(seq)
	if f.e.rest == nil {
		var b Breakdown
		f.on[0].peak(&one, &b)
		return b
	}
	var mean geometricMean
	var b Breakdown
	for i := range f.on {
		on := &f.on[i]
		one.variant = on.variant
		on.peak(&one, &b)
		mean.add(&b, on.weight)
	}
	return mean.breakdown()
}

// peak sets best to that of the fullest stage. e is on the variant.
func (on *fixedOn) peak(e *Estimator, best *Breakdown) {
	e.peakOf(&on.plan, &on.stages[0], best)
	for i := range on.stages[1:] {
		var b Breakdown
		if e.peakOf(&on.plan, &on.stages[1+i], &b); b.Total() > best.Total() {
			*best = b
		}
	}
}

// Open returns the verdict on the plan, which has the breakdown need, as Estimator.Open does. c has the plan.
func (f *Fixed) Open(c *spec.Config, need *Breakdown) Verdict {
	f.once.Do(func() {
		for _, p := range Alternatives(c, "") {
			if p != c.Plan {
				f.others = append(f.others, f.e.Fix(p))
			}
		}
	})
	least := need.FitProbability(c.Accelerator.MemBytes)
	most := least
	for _, o := range f.others {
		b := o.At(c.SeqLen)
		fit := b.FitProbability(c.Accelerator.MemBytes)
		least, most = min(least, fit), max(most, fit)
	}
	return Judge(least, most)
}
