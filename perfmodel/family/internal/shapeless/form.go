package shapeless

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// form is a formula for the step time of jobs, given their batch and placement but not their layers.
type form struct {
	name   string
	params []formParam
	kernel formKernel
	// start sets those logarithms p of constants that scale with the job to values estimated from the rows of
	// d.
	start func(d *data, p []float64)
	// logTime returns the logarithm of the step time of x, in seconds, for the logarithms p of the constants.
	// shares are the derivatives of log time by the logarithms of two kinds of work: that of a single replica,
	// and that of replicas together. If grad is not nil, it must be all zeros and receives the derivatives by
	// p.
	logTime func(x *formPoint, p, grad []float64) (logSec float64, shares [2]float64)
}

// formParam is one constant of a form. Its logarithm is fitted.
type formParam struct {
	name   string
	median float64 // of the prior
	// Standard deviations of the logarithm: between models, between sites, and of the remainder. They are start
	// values; sharedEffects fits them.
	model, site, own float64
}

// formPoint holds the values of a Config that a form uses.
type formPoint struct {
	batch   float64 // samples per micro-batch and replica
	accum   float64 // micro-batches per step
	devices float64 // replicas
	nodes   float64 // 1 if the placement is not recorded
	perNode float64 // largest number of devices on a node
	servers float64 // parameter servers, 0 = replicas exchange gradients themselves
	volume  float64 // parameters over refParams, 1 if unknown
	inside  float64 // refIntraBps over the bandwidth in a node, 1 if unknown
	between float64 // refInterBps over the bandwidth between nodes, 1 if unknown
}

// The reference job of the constants: a ResNet-50 on devices with PCIe 3.0 x16, in nodes with 50 Gb/s.
const (
	refParams   = 25.6e6
	refIntraBps = 15.75e9
	refInterBps = 6.25e9
)

// formOf returns the form of c and its point; nil for asynchronous updates and for plans that are not purely
// data parallel.
func formOf(c *spec.Config) (*form, formPoint) {
	p := c.Plan.Normal()
	if p.CheckBounds() != nil || p.Devices() != p.DP || p.EP != 1 || p.ZeRO != 0 || p.Offload != spec.OffloadNone ||
		p.Recompute != spec.RecomputeNone || p.Async {
		return nil, formPoint{}
	}
	x := formPoint{
		batch: float64(p.MicroBatch), accum: float64(p.AccumSteps), devices: float64(p.DP), servers: float64(p.ParamServers),
		nodes: 1, perNode: float64(p.DP),
		volume:  ratio(c.Model.Params(), refParams),
		inside:  ratio(refIntraBps, c.Link.IntraBps),
		between: ratio(refInterBps, c.Link.InterBps),
	}
	if total, nodes, most, _ := c.Shape.Stats(); total == p.DP {
		x.nodes, x.perNode = float64(nodes), float64(most)
	}
	if p.ParamServers > 0 {
		return serversForm, x
	}
	return allReduceForm, x
}

// ratio returns a/b limited to 1e±6, or 1 if one of them is not a positive number.
func ratio(a, b float64) float64 {
	if !(a > 0 && b > 0) || math.IsInf(a, 1) || math.IsInf(b, 1) {
		return 1
	}
	return math.Max(1e-6, math.Min(a/b, 1e6))
}

// overlapped returns (a^γ + b^γ)^(1/γ) for a > 0, b >= 0 and γ >= 1, and the derivatives of its logarithm by
// log a, log b and γ.
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

// Key identifies the jobs of one fit.
type Key struct {
	spec.Key
	servers bool
}

// KeyOf returns the Key of c.
func KeyOf(c *spec.Config) Key {
	return Key{c.Key(), c.Plan.ParamServers > 0}
}

// Covers reports whether this package predicts c: a data parallel job without known layers, or with parameter
// servers.
func Covers(c *spec.Config) bool {
	form, _ := formOf(c)
	return form == serversForm || form != nil && !c.Model.HasShape()
}
