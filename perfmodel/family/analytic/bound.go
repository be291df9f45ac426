package analytic

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// atLeast computes lower bounds of step times for searches. It counts kernels and their launches, tensor, context and expert
// parallelism, and the pipeline, and omits parts that take longer to compute. Plans that follow each other in a search
// differ little: it keeps the bounds of the last one in all modes, and passes for plans with the same key, also for
// other shapes where kernels and links are the same. It is not safe for concurrent use.
type atLeast struct {
	c        spec.Config // without a plan; the shape is that of the last call
	pr       *Prepared
	each     []Prepared            // pr for each variant, empty until it is needed
	kept     [keptPasses]*keptPass // by hash of the key, nil until it is needed
	machines int                   // number of machines before this one
	last     lastBounds
	scale    float64 // factor on the bound, for a residual that may shorten the step
}

// lastBounds are the bounds of the plans that differ from plan only in sequence parallelism, training states and
// recomputation. Training states count only as far as the weights of the variants depend on them.
type lastBounds struct {
	plan spec.Plan // without these modes
	sec  [stack.Uses][2][3]float64
	has  [stack.Uses][2][3]bool
}

// keptPasses is the number of passes kept.
const keptPasses = 1 << 11

type keptPass struct {
	by passKey
	pass
}

// passKey is what a pass depends on.
type passKey struct {
	machine           int // the value of atLeast.machines
	variant           int
	sequence          bool
	tp, cp, ep, micro int
	precision         spec.Precision
}

// slot returns the index of the pass with key k among those kept.
func (k *passKey) slot() int {
	slot := 2 * k.variant
	if k.sequence {
		slot++
	}
	for _, n := range [...]int{k.tp, k.cp, k.ep, k.micro} {
		slot = slot*61 + n
	}
	return int(uint(slot) % keptPasses)
}

// sec returns a lower bound, in seconds, of the predicted step of p, a normal plan, on a shape; 0 if there is none.
func (a *atLeast) sec(p *spec.Plan, shape *spec.Shape) float64 {
	if a.c.Shape != *shape {
		a.reshape(shape)
	}
	if !a.pr.work.shape || a.pr.alone > 0 {
		return 0
	}
	plain := *p
	plain.SequenceParallel, plain.ZeRO, plain.Shard, plain.Offload, plain.Recompute = false, 0, 0, spec.OffloadNone, spec.RecomputeNone
	if a.last.plan != plain {
		a.last = lastBounds{plan: plain}
	}
	use, sequence, recompute := stack.UseOf(p), 0, 0
	if p.SequenceParallel {
		sequence = 1
	}
	switch p.Recompute {
	case spec.RecomputeSelective:
		recompute = 1
	case spec.RecomputeFull:
		recompute = 2
	}
	sec, has := &a.last.sec[use][sequence][recompute], &a.last.has[use][sequence][recompute]
	if !*has {
		*sec, *has = a.count(p, use), true
	}
	return *sec
}

// reshape changes a to another shape. It keeps passes if the machine differs in its number of devices only.
func (a *atLeast) reshape(shape *spec.Shape) {
	before := a.pr.machine
	a.c.Shape, a.pr.machine = *shape, machine{}
	_ = newMachine(variant{before.stack, before.k}, &a.c, &a.pr.machine) // it was opened on another shape
	a.each, a.last = a.each[:0], lastBounds{}
	if before.total = a.pr.machine.total; a.pr.machine != before {
		a.machines++
	}
}

// count is sec for a plan without a kept bound.
func (a *atLeast) count(p *spec.Plan, use stack.Use) float64 {
	pr := a.pr
	if pr.variants == nil {
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
	for i, w := range &pr.weight[use] {
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
	kept := a.passOf(pr, &plan, i)
	l := &kept.layer
	compute, recompute, launch := pr.layerSec(l, &plan)
	perLayer := compute + recompute + launch + l.tp*tpOperations(&plan, l) + l.ep + l.cp
	layers, head := pr.pace(&plan, perLayer, kept.head)
	mean, stages := pr.work.layers/float64(plan.PP), float64(plan.PP)
	pipeline := pr.pipelineSec(&plan, mean*perLayer+kept.head/stages, (l.backward-1)*mean*l.forward+kept.head/3/stages)
	return a.scale * (float64(plan.AccumSteps)*(layers*perLayer+head) + pipeline + pr.machine.k.fixedSec)
}

// passOf returns the pass of p, a plan as the variant of index i runs it, which pr has.
func (a *atLeast) passOf(pr *Prepared, p *spec.Plan, i int) *pass {
	by := passKey{a.machines, i, p.SequenceParallel, p.TP, p.CP, p.EP, p.MicroBatch, p.Precision}
	kept := &a.kept[by.slot()]
	if *kept == nil {
		*kept = &keptPass{}
	}
	if (*kept).by != by {
		(*kept).by = by
		pr.passOf(p, &(*kept).pass)
	}
	return &(*kept).pass
}

// StepAtLeast implements perfmodel.Bounder.
func (*Model) StepAtLeast(c spec.Config) (perfmodel.StepBound, error) {
	return Shipped().Physics.AtLeast(&c, 1)
}

// AtLeast returns the lower bound of perfmodel.Bounder, multiplied by scale. The error wraps
// perfmodel.ErrNotCovered.
func (ph *Physics) AtLeast(c *spec.Config, scale float64) (perfmodel.StepBound, error) {
	a := &atLeast{c: *c, pr: &Prepared{}, scale: scale}
	if err := ph.Open(c, "", a.pr); err != nil {
		return nil, err
	}
	return a.sec, nil
}
