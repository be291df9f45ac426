package memory

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// AtLeast returns a lower bound of the memory that a device must have so that p counts as fitting (see Budget), and one of
// Plan(p).HostBytes. They do not depend on micro-batch, recomputation and sequence parallelism, and take a small part of
// the time of Plan: they count the states of the first stage, and what comes with every byte of them. The bounds are 0
// where a constant is negative.
func (e *Estimator) AtLeast(p *spec.Plan) (device, host float64) { return e.atLeast(p, false) }

// AtLeastFrom returns a lower bound of device memory, as AtLeast, for p in its mode of recomputation and sequence
// parallelism, and for the same plan with a larger micro-batch for which GrowsWithBatch is true.
func (e *Estimator) AtLeastFrom(p *spec.Plan) (device float64) {
	device, _ = e.atLeast(p, true) // a smaller micro-batch may have another fullest stage, with more on the host
	return device
}

// GrowsWithBatch reports whether p needs at least as much memory as plans of the same global batch that differ from p only
// in a smaller micro-batch. Without a pipeline, a single micro-batch may free gradients that several accumulate.
func GrowsWithBatch(p *spec.Plan) bool { return p.AccumSteps > 1 || p.PP > 1 }

// atLeast counts the whole plan, or else its states.
func (e *Estimator) atLeast(p *spec.Plan, whole bool) (device, host float64) {
	if e.rest == nil {
		bytes, host := e.leastOn(p, whole)
		return bytes * math.Exp(sureQuantile*e.leastSD) / usableShare, host
	}
	one, normal := *e, p.Normal()
	one.kept = &keptOwned{}
	var mean, square, own float64
	lowest := math.Inf(1)
	for i, w := range &e.of.Weight[stack.UseOf(&normal)] {
		if w == 0 {
			continue
		}
		v := &e.rest[i]
		one.variant = v
		b, h := one.leastOn(&normal, whole)
		l := math.Log(b)
		mean += w * l
		square += w * l * l
		own += w * v.logSD * v.logSD
		lowest = min(lowest, l)
		host += w * h
	}
	if math.IsInf(lowest, -1) {
		return 0, host
	}
	return math.Exp(leastQuantile(mean, max(square-mean*mean, 0), own, lowest)) / usableShare, host
}

// leastQuantile returns a lower bound of mean + z·√(variance + own) for all logarithms that are at least as large as some with
// this mean and variance; lowest is the lowest of them, and z is sureQuantile. A larger logarithm adds to the mean, but takes
// more from the variance if it is far below the mean:
//
//	z·√(variance + own) ≥ z·(cov(l, v) + √own·√(1 - var(v)))   for every v of the logarithms l with var(v) ≤ 1
//	mean + z·cov(l, v) = Σ w·l·(1 + z·v)                        for v of mean 0, grows with each l if v ≥ -1/z
//
// v is (l - mean)/√(variance + own), times the largest share of 1 that keeps the lowest at -1/z.
func leastQuantile(mean, variance, own, lowest float64) float64 {
	sd := math.Sqrt(variance + own)
	if sd == 0 {
		return mean
	}
	share := 1.0
	if below := sureQuantile * (mean - lowest); below > sd {
		share = sd / below
	}
	return mean + sureQuantile*(share*variance/sd+math.Sqrt(own*max(1-share*share*variance/(sd*sd), 0)))
}

// leastOn returns what atLeast counts on one training stack, in bytes.
func (e *Estimator) leastOn(p *spec.Plan, whole bool) (bytes, host float64) {
	normal := e.normal(*p)
	if !whole {
		return e.statesAtLeast(&normal)
	}
	b := e.most(&normal, stack.Device)
	return b.Total(), b.HostBytes
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
