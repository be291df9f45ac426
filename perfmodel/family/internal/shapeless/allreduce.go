package shapeless

import "math"

// Indices of the constants of allReduceForm.
const (
	arLaunch = iota
	arFixed
	arSample
	arAlone
	arShare
	arCrowd
	arSync
	arRing
	arNode
	arNodes
	arHost
	arLog
	arEach
	arOverlap
	arParams
)

// allReduceForm is the step of a data-parallel job with n devices on q nodes, at most g on one node, b samples
// per device and micro-batch, and s micro-batches per step.
//
//	T  = (s-1)·Tc + (Tc^γ + Ts^γ)^(1/γ)
//	Tc = ((L·(1+u·[n=1]))⁴ + (f + c·b)⁴)^(1/4) · (1 + k1·(g-1)/g + k2·(g-1))
//	Ts = S·V·(r1·I·(g-1)/g + r2·N·[q>1] + r3·N·(q-1)/q) + S·√V·(r4·(g-1) + r5·log2 n + r6·(n-1))
//
//	Tc    forward and backward of one micro-batch, seconds. Kernel launches, L, run ahead of the
//	      kernels, f + c·b, so the longer of the two dominates
//	u     extra work of a single replica: AdaptDL estimates the gradient noise from halves of its
//	      batch if there is only one replica
//	k1,k2 slow-down by other devices of the node: shared data loading, host memory and processors
//	Ts    exchange of gradients, seconds. V is parameters over refParams; I and N are the times per
//	      byte in a node and between nodes, relative to refIntraBps and refInterBps; 1 if unknown
//	r1    ring inside a node
//	r2,r3 ring over nodes: fixed cost of the network, and growth with the number of nodes
//	r4-r6 contention in a node, and latencies of trees and rings. The number of messages is that of
//	      the model's arrays, about the square root of its size
//	γ     overlap of exchange and computation, 1 is none
//
// The form (Tc^γ + Ts^γ)^(1/γ), and a Ts with latency and growth in n, are those of Qiao et al., Pollux, OSDI
// 2021, section 3.2; volumes over rings are those of Thakur et al. 2005. The terms, their prior spreads and the
// kernel were chosen with all of Sia's measurements in view; the constants are fitted, see sharedEffects.
var allReduceForm = &form{
	name: "all-reduce",
	params: []formParam{
		arLaunch:  {"L", 0.05, 1.5, 0.7, 0.3},
		arFixed:   {"f", 0.02, 1.5, 0.7, 0.5},
		arSample:  {"c", 1e-3, 3, 0.7, 0.3},
		arAlone:   {"u", 0.1, 0.7, 0.7, 0.5},
		arShare:   {"k1", 0.05, 1, 1, 0.7},
		arCrowd:   {"k2", 0.01, 1, 1, 0.7},
		arSync:    {"S", 0.05, 1.2, 1, 0.3},
		arRing:    {"r1", 0.4, 0.5, 0.7, 0.3},
		arNode:    {"r2", 0.4, 0.5, 0.7, 0.3},
		arNodes:   {"r3", 0.4, 0.5, 0.7, 0.3},
		arHost:    {"r4", 0.06, 0.5, 0.7, 0.3},
		arLog:     {"r5", 0.1, 0.5, 0.7, 0.3},
		arEach:    {"r6", 0.01, 0.5, 0.7, 0.3},
		arOverlap: {"gamma-1", 0.7, 0.35, 0.35, 0.2},
	},
	kernel:  formKernel{batchSD: 0.25, batchScale: 3, placeSD: 0.35, placeScale: 2, stepSD: 0.1, rowSD: 0.04},
	start:   allReduceStart,
	logTime: allReduceLogTime,
}

// allReduceStart assumes, for the smallest number of replicas, that launches take half of the time at the
// smallest batch and that samples take most of it at the largest batch.
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
	p[arLaunch], p[arFixed] = d.y[small]+math.Log(0.5), d.y[small]+math.Log(0.4)
	p[arSample] = d.y[large] + math.Log(0.7/d.at[large].batch)
}

// logBound limits the logarithm of a constant, so that products of exponentials are finite and not 0.
func logBound(v float64) float64 { return math.Max(-logLimit, math.Min(v, logLimit)) }

const logLimit = 40

func allReduceLogTime(x *formPoint, p, grad []float64) (float64, [2]float64) {
	var e [arParams]float64
	for i, v := range p[:arParams] {
		e[i] = math.Exp(logBound(v))
	}
	c := newAllReduceCompute(x, &e)
	sync := allReduceSync(x, &e)
	ts := 0.0
	for _, v := range sync {
		ts += v
	}
	last, wc, ws, dGamma := overlapped(c.sec, ts, 1+e[arOverlap])
	t := (x.accum-1)*c.sec + last
	wc, ws, dGamma = (wc*last+(x.accum-1)*c.sec)/t, ws*last/t, dGamma*last/t
	if grad != nil {
		c.differentiate(x, &e, wc, grad)
		if ts > 0 {
			grad[arSync] = ws
			for i, v := range sync {
				grad[arRing+i] = ws * v / ts
			}
		}
		grad[arOverlap] = dGamma * e[arOverlap]
	}
	return math.Log(t), [2]float64{wc, ws}
}

// allReduceCompute is Tc with its parts.
type allReduceCompute struct {
	sec                   float64
	alone, crowd, share   float64 // [n=1], g-1, (g-1)/g
	launched, run, slow   float64
	ofLaunched, ofRunning float64 // d log Tc / d log of launching and running
}

func newAllReduceCompute(x *formPoint, e *[arParams]float64) (c allReduceCompute) {
	if x.devices <= 1 {
		c.alone = 1
	}
	c.crowd = x.perNode - 1
	c.share = c.crowd / x.perNode
	c.launched, c.run = e[arLaunch]*(1+e[arAlone]*c.alone), e[arFixed]+e[arSample]*x.batch
	l4, r4 := math.Pow(c.launched, 4), math.Pow(c.run, 4)
	c.ofLaunched, c.ofRunning = l4/(l4+r4), r4/(l4+r4)
	c.slow = 1 + e[arShare]*c.share + e[arCrowd]*c.crowd
	c.sec = math.Sqrt(math.Sqrt(l4+r4)) * c.slow
	return c
}

// differentiate writes the derivatives of log T by the constants of Tc; w is the derivative by log Tc.
func (c *allReduceCompute) differentiate(x *formPoint, e *[arParams]float64, w float64, grad []float64) {
	grad[arLaunch] = w * c.ofLaunched
	grad[arAlone] = w * c.ofLaunched * e[arAlone] * c.alone / (1 + e[arAlone]*c.alone)
	grad[arFixed] = w * c.ofRunning * e[arFixed] / c.run
	grad[arSample] = w * c.ofRunning * e[arSample] * x.batch / c.run
	grad[arShare] = w * e[arShare] * c.share / c.slow
	grad[arCrowd] = w * e[arCrowd] * c.crowd / c.slow
}

// allReduceSync returns the terms of Ts, r1 to r6.
func allReduceSync(x *formPoint, e *[arParams]float64) [arOverlap - arRing]float64 {
	multi := 0.0
	if x.nodes > 1 {
		multi = 1
	}
	crowd := x.perNode - 1
	bytes, messages := e[arSync]*x.volume, e[arSync]*math.Sqrt(x.volume)
	return [...]float64{
		bytes * x.inside * e[arRing] * crowd / x.perNode,
		bytes * x.between * e[arNode] * multi,
		bytes * x.between * e[arNodes] * (x.nodes - 1) / x.nodes,
		messages * e[arHost] * crowd,
		messages * e[arLog] * math.Log2(x.devices),
		messages * e[arEach] * (x.devices - 1),
	}
}
