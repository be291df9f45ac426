package pollux

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/lbfgsb"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Family is the family "pollux".
var Family = perfmodel.Family{
	Name: "pollux",
	Doc:  "data parallel step time in 7 parameters, as published (Qiao et al., Pollux, OSDI 2021)",
	Fit:  published.fit,
	Load: published.load,
}

// published fits as the authors' artifact does: SciPy's L-BFGS-B with its default stopping rule.
var published = fitter{name: "pollux", stop: lbfgsb.Settings{RelDecrease: 2.2e-9, Gradient: 1e-5}}

// The step time of one job on K replicas and N nodes, with s+1 micro-batches of m samples each (spec.Plan
// counts s+1), in seconds:
//
//	T      = s·Tgrad + Tstep
//	Tgrad  = αc + βc·m                               forward and backward of a micro-batch
//	Tstep  = (Tgrad^γ + Tsync^γ)^(1/γ)               the last one, with synchronization
//	Tsync  = 10⁻⁸                      K = 1
//	         αr + βr·max(K-2, 10⁻⁸)    K ≥ 2, N = 1
//	         αn + βn·max(K-2, 10⁻⁸)    N ≥ 2
//
// γ = 1 means no overlap of the two, γ = ∞ full overlap. All parameters are fitted.
//
// Source: Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", OSDI 2021,
// section 3.2, equations 8-11, and its artifact petuum/adaptdl@c793c70 for the bounds, the start, the objective
// and its penalties. The model predicts no interval and no memory.
const (
	plComputeFixed  = iota // αc
	plComputeSample        // βc
	plNetFixed             // αn
	plNetReplica           // βn
	plNodeFixed            // αr
	plNodeReplica          // βr
	plOverlap              // γ
	plN
)

// vec has one value per parameter.
type vec [plN]float64

var paramNames = [plN]struct{ name, unit string }{
	{"alpha_c", "s"}, {"beta_c", "s/sample"},
	{"alpha_n", "s"}, {"beta_n", "s/replica"},
	{"alpha_r", "s"}, {"beta_r", "s/replica"},
	{"gamma", "1"},
}

// leastParam is the smallest value of α and β, and the synchronization time of one replica, in seconds.
const leastParam = 1e-8

// point holds the values of a configuration that the model uses.
type point struct {
	Nodes, Replicas, Micro, Accum int // Accum = s+1
}

func newPoint(c *spec.Config, p *spec.Plan) point {
	return point{Nodes: c.Shape.Nodes(), Replicas: p.DP, Micro: p.MicroBatch, Accum: p.AccumSteps}
}

// term is a time in seconds and the derivatives of its logarithm by the
// parameters.
type term struct {
	sec  float64
	grad vec
}

// compute returns Tgrad.
func (x point) compute(v *vec) (t term) {
	m := float64(x.Micro)
	t.sec = v[plComputeFixed] + v[plComputeSample]*m
	t.grad[plComputeFixed], t.grad[plComputeSample] = 1/t.sec, m/t.sec
	return t
}

// sync returns Tsync.
func (x point) sync(v *vec) (t term) {
	fixed, each := plNodeFixed, plNodeReplica
	switch {
	case x.Replicas == 1:
		t.sec = leastParam
		return t
	case x.Nodes > 1:
		fixed, each = plNetFixed, plNetReplica
	}
	k := max(float64(x.Replicas-2), leastParam)
	t.sec = v[fixed] + v[each]*k
	t.grad[fixed], t.grad[each] = 1/t.sec, k/t.sec
	return t
}

// joined returns Tstep from Tgrad and Tsync. It works with logarithms to avoid overflow.
func (v *vec) joined(compute, sync *term) (t term) {
	gamma := v[plOverlap]
	a, b := math.Log(compute.sec), math.Log(sync.sec)
	top := max(a, b)
	wa, wb := math.Exp(gamma*(a-top)), math.Exp(gamma*(b-top))
	logSec := top + math.Log(wa+wb)/gamma
	wa, wb = wa/(wa+wb), wb/(wa+wb)
	t.sec = math.Exp(logSec)
	for i := range t.grad {
		t.grad[i] = wa*compute.grad[i] + wb*sync.grad[i]
	}
	t.grad[plOverlap] = (wa*a + wb*b - logSec) / gamma
	return t
}

// step returns extra·Tgrad + Tstep, and Tgrad.
func (x point) step(v *vec, extra int) (t, compute term) {
	compute = x.compute(v)
	sync := x.sync(v)
	last := v.joined(&compute, &sync)
	s := float64(extra)
	t.sec = s*compute.sec + last.sec
	for i := range t.grad {
		t.grad[i] = (s*compute.sec*compute.grad[i] + last.sec*last.grad[i]) / t.sec
	}
	return t, compute
}

// seconds returns T.
func (x point) seconds(v *vec) float64 {
	t, _ := x.step(v, x.Accum-1)
	return t.sec
}
