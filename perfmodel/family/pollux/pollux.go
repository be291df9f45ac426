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
func (x point) compute(v *vec) float64 {
	return v[plComputeFixed] + v[plComputeSample]*float64(x.Micro)
}

// link returns the parameters of Tsync and the factor of the second; ok is false for one replica, which has none.
func (x point) link() (fixed, each int, k float64, ok bool) {
	fixed, each = plNodeFixed, plNodeReplica
	if x.Nodes > 1 {
		fixed, each = plNetFixed, plNetReplica
	}
	return fixed, each, max(float64(x.Replicas-2), leastParam), x.Replicas > 1
}

// sync returns Tsync.
func (x point) sync(v *vec) float64 {
	fixed, each, k, ok := x.link()
	if !ok {
		return leastParam
	}
	return v[fixed] + v[each]*k
}

// joint is Tstep and what its derivatives need.
type joint struct {
	sec, log              float64
	logCompute, logSync   float64 // of Tgrad and Tsync
	partCompute, partSync float64 // of Tgrad^γ + Tsync^γ
}

// join returns Tstep from Tgrad and Tsync. It works with logarithms to avoid overflow.
func join(gamma, compute, sync float64) (j joint) {
	j.logCompute, j.logSync = math.Log(compute), math.Log(sync)
	top := max(j.logCompute, j.logSync)
	a, b := power(gamma, j.logCompute-top), power(gamma, j.logSync-top)
	j.log = top + math.Log(a+b)/gamma
	j.sec = math.Exp(j.log)
	j.partCompute, j.partSync = a/(a+b), b/(a+b)
	return j
}

// power returns exp(γ·log). One of the two that join needs is 1.
func power(gamma, log float64) float64 {
	if log == 0 {
		return 1
	}
	return math.Exp(gamma * log)
}

// step returns extra·Tgrad + Tstep, and Tgrad.
func (x point) step(v *vec, extra int) (t, compute term) {
	m := float64(x.Micro)
	compute.sec = x.compute(v)
	compute.grad[plComputeFixed], compute.grad[plComputeSample] = 1/compute.sec, m/compute.sec
	sync := term{sec: x.sync(v)}
	if fixed, each, k, ok := x.link(); ok {
		sync.grad[fixed], sync.grad[each] = 1/sync.sec, k/sync.sec
	}
	gamma := v[plOverlap]
	last := join(gamma, compute.sec, sync.sec)
	var grad vec // of the logarithm of Tstep
	for i := range grad {
		grad[i] = last.partCompute*compute.grad[i] + last.partSync*sync.grad[i]
	}
	grad[plOverlap] = (last.partCompute*last.logCompute + last.partSync*last.logSync - last.log) / gamma
	s := float64(extra)
	t.sec = s*compute.sec + last.sec
	for i := range t.grad {
		t.grad[i] = (s*compute.sec*compute.grad[i] + last.sec*grad[i]) / t.sec
	}
	return t, compute
}

// seconds returns T.
func (x point) seconds(v *vec) float64 {
	compute := x.compute(v)
	return float64(x.Accum-1)*compute + join(v[plOverlap], compute, x.sync(v)).sec
}
