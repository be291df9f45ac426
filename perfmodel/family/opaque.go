package family

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// opaqueParam is one constant of an opaque form: its logarithm is what is
// fitted.
type opaqueParam struct {
	name   string
	median float64 // before anything was measured
	// model, site and own are standard deviations of the logarithm: of what is
	// the model's on any site, of what is the site's for any model, and of what
	// is only theirs together.
	model, site, own float64
}

// opaqueForm is a formula of the step time of jobs whose layers are not known.
type opaqueForm struct {
	name   string
	params []opaqueParam
	// logTime returns the logarithm of the step time in seconds of x at the
	// logarithms p, and writes its derivatives by them to grad, zero on entry,
	// if that is not nil. shares are how much of it each of two kinds of work is
	// responsible for, d log time / d log work: that of a replica alone and that
	// of several together.
	// start moves the logarithms of constants whose order of magnitude is the
	// job's to what d suggests.
	start   func(d *opaqueData, p []float64)
	logTime func(x *opaquePoint, p, grad []float64) (logSec float64, shares [2]float64)
}

// opaquePoint is what an opaque form sees of a Config.
type opaquePoint struct {
	batch   float64 // samples per micro-batch and replica
	accum   float64 // micro-batches per step
	devices float64 // replicas, workers
	nodes   float64 // 1 where placement is not recorded
	perNode float64 // devices on the node with most
	servers float64 // parameter servers, 0 = all-reduce
}

// newOpaquePoint reports false for a plan that is more than data parallel.
func newOpaquePoint(c *spec.Config) (opaquePoint, bool) {
	p := c.Plan.Normal()
	if p.Devices() != p.DP || p.EP != 1 || p.ZeRO != 0 || p.Offload != spec.OffloadNone || p.Recompute != spec.RecomputeNone {
		return opaquePoint{}, false
	}
	x := opaquePoint{batch: float64(p.MicroBatch), accum: float64(p.AccumSteps), devices: float64(p.DP),
		nodes: 1, perNode: float64(p.DP), servers: float64(p.ParamServers)}
	if _, nodes, most, _ := c.Shape.Stats(); nodes > 0 {
		x.nodes, x.perNode = float64(nodes), float64(most)
	}
	return x, true
}

// Constants of the all-reduce form, by place.
const (
	orLaunch = iota
	orFixed
	orSample
	orAlone
	orShare
	orCrowd
	orSync
	orRing
	orHost
	orNode
	orNodes
	orLog
	orEach
	orOverlap
	orParams
)

// allReduceForm is the step of a data-parallel job, n devices on q nodes with up
// to g on one and b samples on each device:
//
//	T  = (s-1)·Tc + (Tc^γ + Ts^γ)^(1/γ)
//	Tc = ((L·(1+u·[n=1]))⁴ + (f + c·b)⁴)^(1/4) · (1 + k1·(g-1)/g + k2·(g-1))
//	Ts = r1·(g-1)/g + r2·(g-1) + r3·[q>1] + r4·(q-1)/q + r5·log2 n + r6·(n-1)
//
//	s     micro-batches per step
//	Tc    forward and backward of one micro-batch, seconds: launching kernels, L,
//	      runs ahead of executing them, f + c·b, so about the longer of the two
//	u     what a lone replica launches besides (AdaptDL estimates gradient noise
//	      from two halves of its batch)
//	k1,k2 what devices of a node do to each other: shared loading and host memory
//	Ts    gradient exchange, seconds: r1 ring in a node, r2 contention in one, r3
//	      and r4 ring over nodes, r5 and r6 latencies
//	γ     overlap, 1 is none
//
// The form Tc^γ + Ts^γ is that of Qiao et al., Pollux, OSDI 2021, equation 11.
// The terms were chosen with all of Sia's measurements in view.
var allReduceForm = &opaqueForm{
	name: "all-reduce",
	params: []opaqueParam{
		orLaunch:  {"L", 0.05, 1.5, 0.7, 0.3},
		orFixed:   {"f", 0.02, 1.5, 0.7, 0.5},
		orSample:  {"c", 1e-3, 3, 0.7, 0.3},
		orAlone:   {"u", 0.1, 0.7, 0.7, 0.5},
		orShare:   {"k1", 0.05, 1, 1, 0.7},
		orCrowd:   {"k2", 0.01, 1, 1, 0.7},
		orSync:    {"S", 0.05, 1.5, 1, 0.3},
		orRing:    {"r1", 0.4, 0.5, 0.7, 0.3},
		orHost:    {"r2", 0.06, 0.5, 0.7, 0.3},
		orNode:    {"r3", 0.4, 0.5, 0.7, 0.3},
		orNodes:   {"r4", 0.4, 0.5, 0.7, 0.3},
		orLog:     {"r5", 0.1, 0.5, 0.7, 0.3},
		orEach:    {"r6", 0.01, 0.5, 0.7, 0.3},
		orOverlap: {"gamma-1", 0.7, 0.5, 0.5, 0.3},
	},
	start:   allReduceStart,
	logTime: allReduceLogTime,
}

// allReduceStart takes the time of a replica alone, or of the fewest there are,
// to be half launching at the smallest batch and mostly samples at the largest.
func allReduceStart(d *opaqueData, p []float64) {
	small, large := -1, -1
	for i, x := range d.at {
		if x.devices > d.at[max(small, 0)].devices {
			continue
		}
		fewer := small < 0 || x.devices < d.at[small].devices
		if fewer || x.batch < d.at[small].batch {
			small = i
		}
		if fewer || x.batch > d.at[large].batch {
			large = i
		}
	}
	if small < 0 {
		return
	}
	p[orLaunch], p[orFixed] = d.y[small]+math.Log(0.5), d.y[small]+math.Log(0.4)
	p[orSample] = d.y[large] + math.Log(0.7/d.at[large].batch)
}

func allReduceLogTime(x *opaquePoint, p, grad []float64) (float64, [2]float64) {
	var e [orParams]float64
	for i, v := range p[:orParams] {
		e[i] = math.Exp(v)
	}
	alone, multi := 0.0, 0.0
	if x.devices <= 1 {
		alone = 1
	}
	if x.nodes > 1 {
		multi = 1
	}
	crowd := x.perNode - 1
	share := crowd / math.Max(x.perNode, 1)
	launch, run := e[orLaunch]*(1+e[orAlone]*alone), e[orFixed]+e[orSample]*x.batch
	l4, r4 := math.Pow(launch, 4), math.Pow(run, 4)
	one := math.Sqrt(math.Sqrt(l4 + r4))
	slow := 1 + e[orShare]*share + e[orCrowd]*crowd
	tc := one * slow
	sync := [...]float64{e[orRing] * share, e[orHost] * crowd, e[orNode] * multi, e[orNodes] * (x.nodes - 1) / x.nodes,
		e[orLog] * math.Log2(x.devices), e[orEach] * (x.devices - 1)}
	ts := 0.0
	for i := range sync {
		sync[i] *= e[orSync]
		ts += sync[i]
	}
	gamma := 1 + e[orOverlap]
	last, wc, ws, dGamma := overlapped(tc, ts, gamma)
	t := (x.accum-1)*tc + last
	wc, ws, dGamma = (wc*last+(x.accum-1)*tc)/t, ws*last/t, dGamma*last/t
	if grad != nil {
		inOne := [2]float64{l4 / (l4 + r4), r4 / (l4 + r4)}
		grad[orLaunch] = wc * inOne[0]
		grad[orAlone] = wc * inOne[0] * e[orAlone] * alone / (1 + e[orAlone]*alone)
		grad[orFixed] = wc * inOne[1] * e[orFixed] / run
		grad[orSample] = wc * inOne[1] * e[orSample] * x.batch / run
		grad[orShare] = wc * e[orShare] * share / slow
		grad[orCrowd] = wc * e[orCrowd] * crowd / slow
		if ts > 0 {
			grad[orSync] = ws
			for i, s := range sync {
				grad[orRing+i] = ws * s / ts
			}
		}
		grad[orOverlap] = dGamma * e[orOverlap]
	}
	return math.Log(t), [2]float64{wc, ws}
}

// overlapped returns (a^γ + b^γ)^(1/γ), and the derivatives of its logarithm by
// the logarithms of a and b and by γ.
func overlapped(a, b, gamma float64) (t, wa, wb, dGamma float64) {
	if b <= 0 {
		return a, 1, 0, 0
	}
	la, lb := math.Log(a), math.Log(b)
	m := math.Max(la, lb)
	ea, eb := math.Exp(gamma*(la-m)), math.Exp(gamma*(lb-m))
	sum := math.Log(ea + eb)
	wa, wb = ea/(ea+eb), eb/(ea+eb)
	return math.Exp(m + sum/gamma), wa, wb, (wa*(la-m)+wb*(lb-m))/gamma - sum/(gamma*gamma)
}
