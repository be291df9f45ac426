package analytic

import (
	"math"
	"math/bits"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// atLeast computes lower bounds of step times for searches. It counts kernels, tensor, context and expert
// parallelism and the bubble, and omits parts that take longer to compute. It keeps the last passes for plans
// with the same key, so it is not safe for concurrent use.
type atLeast struct {
	pr    *Prepared
	each  []Prepared             // pr for each variant, empty until it is needed
	kept  [][keptPasses]keptPass // of each variant: without and with sequence parallelism, by the logarithm of EP
	scale float64                // factor on the bound, for a residual that may shorten the step
}

const keptPasses = 16

type keptPass struct {
	by passKey
	pass
}

// passKey is the part of a plan that a pass depends on.
type passKey struct {
	tp, cp, ep, micro int
	precision         spec.Precision
}

// sec returns a lower bound, in seconds, of the predicted step of p, a normal plan; 0 if there is none.
func (a *atLeast) sec(p *spec.Plan) float64 {
	pr := a.pr
	switch {
	case !pr.work.shape || pr.alone > 0:
		return 0
	case pr.variants == nil:
		return a.one(pr, p, 0)
	}
	if len(a.each) == 0 {
		for _, v := range pr.variants {
			a.each = append(a.each, *pr)
			m := &a.each[len(a.each)-1].machine
			m.stack = v.stack
			m.use(v.k)
		}
	}
	log := 0.0
	for i, w := range &pr.weight[stack.UseOf(p)] {
		if w > 0 {
			log += w * math.Log(a.one(&a.each[i], p, i))
		}
	}
	return math.Exp(log)
}

// one is sec for the variant of index i, which pr has.
func (a *atLeast) one(pr *Prepared, p *spec.Plan, i int) float64 {
	plan := *p
	pr.applyStack(&plan)
	i *= 2
	if plan.SequenceParallel {
		i++
	}
	kept := &a.kept[i][bits.Len(uint(plan.EP))%keptPasses]
	if by := (passKey{plan.TP, plan.CP, plan.EP, plan.MicroBatch, plan.Precision}); kept.by != by {
		kept.by, kept.pass = by, pr.passOf(&plan)
	}
	l := &kept.layer
	compute, recompute := pr.kernelSec(l, &plan)
	perLayer := compute + recompute + l.tp*tpOperations(&plan, l) + l.ep + l.cp
	layers, head := pr.pace(&plan, perLayer, kept.head)
	t := float64(plan.AccumSteps)*(layers*perLayer+head) + pr.machine.k.fixedSec
	if plan.PP > 1 {
		mean, stages := pr.work.layers/float64(plan.PP), float64(plan.PP)
		t += pr.machine.k.bubbleShare * bubbleSec(&plan, mean*perLayer+kept.head/stages, (l.backward-1)*mean*l.forward+kept.head/3/stages)
	}
	return t * a.scale
}

// StepAtLeast implements perfmodel.Bounder.
func (*Model) StepAtLeast(c spec.Config) (func(*spec.Plan) float64, error) {
	return Shipped().Physics.AtLeast(&c, 1)
}

// AtLeast returns the lower bound of perfmodel.Bounder, multiplied by scale. The error wraps
// perfmodel.ErrNotCovered.
func (ph *Physics) AtLeast(c *spec.Config, scale float64) (func(*spec.Plan) float64, error) {
	a := &atLeast{pr: &Prepared{}, scale: scale}
	if err := ph.Open(c, "", a.pr); err != nil {
		return nil, err
	}
	a.kept = make([][keptPasses]keptPass, 2*max(len(a.pr.variants), 1))
	return a.sec, nil
}
