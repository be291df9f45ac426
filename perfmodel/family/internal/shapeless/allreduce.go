package shapeless

import "math"

// Indices of the constants of allReduceForm.
const (
	orLaunch = iota
	orFixed
	orSample
	orAlone
	orShare
	orCrowd
	orSync
	orRing
	orNode
	orNodes
	orHost
	orLog
	orEach
	orOverlap
	orParams
)

// allReduceForm is the step of a data-parallel job: n devices on q nodes, at most
// g on one, b samples on each device, s micro-batches per step.
//
//	T  = (s-1)·Tc + (Tc^γ + Ts^γ)^(1/γ)
//	Tc = ((L·(1+u·[n=1]))⁴ + (f + c·b)⁴)^(1/4) · (1 + k1·(g-1)/g + k2·(g-1))
//	Ts = S·V·(r1·I·(g-1)/g + r2·N·[q>1] + r3·N·(q-1)/q) + S·√V·(r4·(g-1) + r5·log2 n + r6·(n-1))
//
//	Tc    forward and backward of one micro-batch, seconds. Launching its kernels,
//	      L, runs ahead of executing them, f + c·b, so that it takes about the
//	      longer of the two
//	u     extra work of a single replica: AdaptDL estimates the gradient noise
//	      from halves of its batch where there is one replica only
//	k1,k2 slow-down by other devices of the node: shared data loading, host memory
//	      and processors
//	Ts    exchange of gradients, seconds. V parameters over refParams; I and N
//	      seconds per byte in a node and between nodes, over those of
//	      refIntraBps and refInterBps; 1 where not known
//	r1    ring within a node
//	r2,r3 ring over nodes: the fixed cost of the network, and its growth with their
//	      number
//	r4-r6 contention in a node, and latencies of trees and rings, of as many
//	      messages as a model has arrays, about the root of its size
//	γ     overlap of exchange and computation, 1 is none
//
// The form (Tc^γ + Ts^γ)^(1/γ) and a Ts of latency and growth with n are of Qiao
// et al., Pollux, OSDI 2021, section 3.2; volumes over rings are Thakur et al.
// 2005. The terms, their prior spreads and the kernel were chosen with all of
// Sia's measurements in view; the constants are learnt, see sharedEffects.
var allReduceForm = &form{
	name: "all-reduce",
	params: []formParam{
		orLaunch:  {"L", 0.05, 1.5, 0.7, 0.3},
		orFixed:   {"f", 0.02, 1.5, 0.7, 0.5},
		orSample:  {"c", 1e-3, 3, 0.7, 0.3},
		orAlone:   {"u", 0.1, 0.7, 0.7, 0.5},
		orShare:   {"k1", 0.05, 1, 1, 0.7},
		orCrowd:   {"k2", 0.01, 1, 1, 0.7},
		orSync:    {"S", 0.05, 1.2, 1, 0.3},
		orRing:    {"r1", 0.4, 0.5, 0.7, 0.3},
		orNode:    {"r2", 0.4, 0.5, 0.7, 0.3},
		orNodes:   {"r3", 0.4, 0.5, 0.7, 0.3},
		orHost:    {"r4", 0.06, 0.5, 0.7, 0.3},
		orLog:     {"r5", 0.1, 0.5, 0.7, 0.3},
		orEach:    {"r6", 0.01, 0.5, 0.7, 0.3},
		orOverlap: {"gamma-1", 0.7, 0.35, 0.35, 0.2},
	},
	kernel:  formKernel{batchSD: 0.25, batchScale: 3, placeSD: 0.35, placeScale: 2, stepSD: 0.1, rowSD: 0.04},
	start:   allReduceStart,
	logTime: allReduceLogTime,
}

// allReduceStart assumes that, with the fewest replicas, half of the time is
// launching at the smallest batch and most is samples at the largest.
func allReduceStart(d *data, p []float64) {
	if len(d.at) == 0 {
		return
	}
	small, large := 0, 0
	for i := range d.at {
		x := &d.at[i]
		fewer := x.devices < d.at[small].devices
		if x.devices > d.at[small].devices {
			continue
		}
		if fewer || x.batch < d.at[small].batch {
			small = i
		}
		if fewer || x.batch > d.at[large].batch {
			large = i
		}
	}
	p[orLaunch], p[orFixed] = d.y[small]+math.Log(0.5), d.y[small]+math.Log(0.4)
	p[orSample] = d.y[large] + math.Log(0.7/d.at[large].batch)
}

// logBound limits the logarithm of a constant, so that products of exponentials are
// finite and not zero.
func logBound(v float64) float64 { return math.Max(-logLimit, math.Min(v, logLimit)) }

const logLimit = 40

func allReduceLogTime(x *formPoint, p, grad []float64) (float64, [2]float64) {
	var e [orParams]float64
	for i, v := range p[:orParams] {
		e[i] = math.Exp(logBound(v))
	}
	c := newAllReduceCompute(x, &e)
	sync := allReduceSync(x, &e)
	ts := 0.0
	for _, v := range sync {
		ts += v
	}
	last, wc, ws, dGamma := overlapped(c.sec, ts, 1+e[orOverlap])
	t := (x.accum-1)*c.sec + last
	wc, ws, dGamma = (wc*last+(x.accum-1)*c.sec)/t, ws*last/t, dGamma*last/t
	if grad != nil {
		c.differentiate(x, &e, wc, grad)
		if ts > 0 {
			grad[orSync] = ws
			for i, v := range sync {
				grad[orRing+i] = ws * v / ts
			}
		}
		grad[orOverlap] = dGamma * e[orOverlap]
	}
	return math.Log(t), [2]float64{wc, ws}
}

// allReduceCompute is Tc and its parts.
type allReduceCompute struct {
	sec                   float64
	alone, crowd, share   float64 // [n=1], g-1, (g-1)/g
	launched, run, slow   float64
	ofLaunched, ofRunning float64 // d log Tc / d log of launching and running
}

func newAllReduceCompute(x *formPoint, e *[orParams]float64) (c allReduceCompute) {
	if x.devices <= 1 {
		c.alone = 1
	}
	c.crowd = x.perNode - 1
	c.share = c.crowd / x.perNode
	c.launched, c.run = e[orLaunch]*(1+e[orAlone]*c.alone), e[orFixed]+e[orSample]*x.batch
	l4, r4 := math.Pow(c.launched, 4), math.Pow(c.run, 4)
	c.ofLaunched, c.ofRunning = l4/(l4+r4), r4/(l4+r4)
	c.slow = 1 + e[orShare]*c.share + e[orCrowd]*c.crowd
	c.sec = math.Sqrt(math.Sqrt(l4+r4)) * c.slow
	return c
}

// differentiate writes the derivatives of log T by the constants of Tc, w being
// that by log Tc.
func (c *allReduceCompute) differentiate(x *formPoint, e *[orParams]float64, w float64, grad []float64) {
	grad[orLaunch] = w * c.ofLaunched
	grad[orAlone] = w * c.ofLaunched * e[orAlone] * c.alone / (1 + e[orAlone]*c.alone)
	grad[orFixed] = w * c.ofRunning * e[orFixed] / c.run
	grad[orSample] = w * c.ofRunning * e[orSample] * x.batch / c.run
	grad[orShare] = w * e[orShare] * c.share / c.slow
	grad[orCrowd] = w * e[orCrowd] * c.crowd / c.slow
}

// allReduceSync returns the terms of Ts, r1 to r6.
func allReduceSync(x *formPoint, e *[orParams]float64) [orOverlap - orRing]float64 {
	multi := 0.0
	if x.nodes > 1 {
		multi = 1
	}
	crowd := x.perNode - 1
	bytes, messages := e[orSync]*x.volume, e[orSync]*math.Sqrt(x.volume)
	return [...]float64{
		bytes * x.inside * e[orRing] * crowd / x.perNode,
		bytes * x.between * e[orNode] * multi,
		bytes * x.between * e[orNodes] * (x.nodes - 1) / x.nodes,
		messages * e[orHost] * crowd,
		messages * e[orLog] * math.Log2(x.devices),
		messages * e[orEach] * (x.devices - 1),
	}
}
