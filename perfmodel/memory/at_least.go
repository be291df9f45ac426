package memory

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// AtLeast returns lower bounds of Plan(p).Total() and of its HostBytes that do not depend on recomputation and sequence
// parallelism and take a small part of the time: the states of the first stage, and what comes with every byte of them.
// The spread of an estimate is at least leastLogSD. The bounds are 0 where a constant is negative.
func (e *Estimator) AtLeast(p *spec.Plan) (bytes, host, leastLogSD float64) {
	normal := p.Normal()
	if e.rest == nil {
		bytes, host = e.statesAtLeast(&normal)
		return bytes, host, e.leastSD
	}
	log := 0.0
	one := *e
	one.kept = &keptOwned{}
	for i, w := range &e.of.Weight[stack.UseOf(&normal)] {
		if w == 0 {
			continue
		}
		one.variant = &e.rest[i]
		b, h := one.statesAtLeast(&normal)
		log += w * math.Log(b)
		host += w * h
	}
	return math.Exp(log), host, e.leastSD
}

// statesAtLeast are the bounds on one training stack, see stage: activations, working set and buffers only add to them.
// Where gradients are freed, activations and working set are as large as these, or the peak is when all gradients are there.
func (e *Estimator) statesAtLeast(p *spec.Plan) (bytes, host float64) {
	unused := e.k.Fragmentation + e.k.Unseen
	if unused < 0 || e.k.Activation < 0 || e.k.Loss < 0 {
		return 0, 0
	}
	var b Breakdown
	stage := max(e.alone-1, 0)
	e.states(&b, p, e.own(p, e.layersOn(p, stage), stage))
	if p.PP > 1 {
		b.HostBytes = 0 // that of the fullest stage counts, which may be another one
	}
	moved := b.Parameters + b.Gradients + b.Gathered + b.Working + b.Buffers
	return moved + b.Optimizer + unused*moved + e.k.Unseen*b.Optimizer + e.outside(p), b.HostBytes
}
