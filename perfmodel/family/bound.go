package family

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// atLeast bounds the step times of plans from below, for searches: it counts
// what kernels, tensor, context and expert parallelism and the bubble take and
// leaves out what is harder to count. Plans that differ in other things share a
// pass, which is kept between calls: not safe for concurrent use.
type atLeast struct {
	pr    *prepared
	kept  [2]keptPass // without and with sequence parallelism
	scale float64     // of the time, for what a residual may take off
}

type keptPass struct {
	by passKey
	pass
}

// passKey is what a pass depends on.
type passKey struct {
	tp, cp, ep, micro int
	precision         spec.Precision
}

// sec returns seconds that the predicted step of p, a normal plan, takes at
// least; 0 where nothing is known.
func (a *atLeast) sec(p *spec.Plan) float64 {
	pr := a.pr
	if !pr.work.shape {
		return 0
	}
	plan := *p
	pr.stackHabits(&plan)
	kept := &a.kept[0]
	if plan.SequenceParallel {
		kept = &a.kept[1]
	}
	if by := (passKey{plan.TP, plan.CP, plan.EP, plan.MicroBatch, plan.Precision}); kept.by != by {
		kept.by, kept.pass = by, pr.passOf(&plan)
	}
	l := &kept.layer
	compute, recompute := pr.kernelSec(l, &plan)
	perLayer := compute + recompute + l.sync + l.tp*tpOperations(&plan) + l.ep + l.cp
	layers, head := pr.pace(&plan, perLayer, kept.head)
	t := float64(plan.AccumSteps)*(layers*perLayer+head) + pr.machine.k.fixedSec
	if plan.PP > 1 {
		mean, stages := pr.work.layers/float64(plan.PP), float64(plan.PP)
		t += pr.machine.k.bubbleShare * bubbleSec(&plan, mean*perLayer+kept.head/stages, mean*l.forward+kept.head/3/stages)
	}
	return t * a.scale
}

// StepAtLeast implements perfmodel.Bounder.
func (*Analytic) StepAtLeast(c spec.Config) (func(*spec.Plan) float64, error) {
	return Shipped().physics.atLeast(&c, 1)
}

// StepAtLeast implements perfmodel.Bounder. Where other forms are mixed in, or
// each prediction has a residual process of its own, nothing is known.
func (h *Hybrid) StepAtLeast(c spec.Config) (func(*spec.Plan) float64, error) {
	if h.mixed[c.Key()] != nil || h.base.rest != nil && h.base.rest.many() {
		return nil, nil
	}
	return h.base.physics.atLeast(&c, math.Exp(h.base.rest.least()))
}

func (ph *physics) atLeast(c *spec.Config, scale float64) (func(*spec.Plan) float64, error) {
	a := &atLeast{pr: &prepared{}, scale: scale}
	if err := ph.open(c, "", a.pr); err != nil {
		return nil, err
	}
	return a.sec, nil
}

// least returns what the mean of the process is nowhere below: no correlation
// exceeds 1, nor is negative.
func (r *residual) least() float64 {
	if r == nil {
		return 0
	}
	sum := 0.0
	for _, a := range r.alpha {
		sum += min(a, 0)
	}
	return r.kernel.SD * r.kernel.SD * sum
}
