package family

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// opaqueForm is a formula of the step time of jobs known only by their batch and
// placement: nothing is known of their layers.
type opaqueForm struct {
	name   string
	params []opaqueParam
	kernel opaqueKernel
	// start moves the logarithms of those constants whose order of magnitude is
	// the job's to what rows suggest.
	start func(d *opaqueData, p []float64)
	// logTime returns the logarithm of the step time of x in seconds for the
	// logarithms p of the constants, and how much of it each kind of work is
	// responsible for: d log time / d log work, of the work of a replica alone
	// and of what replicas do together. If grad is not nil, zeros as long as p,
	// it becomes the derivatives by p.
	logTime func(x *opaquePoint, p, grad []float64) (logSec float64, shares [2]float64)
}

// opaqueParam is one constant of a form. Its logarithm is fitted.
type opaqueParam struct {
	name   string
	median float64 // before anything was measured
	// Standard deviations of the logarithm: of what is the model's on any site,
	// of what is the site's for any model, and of what is neither's. They are
	// where learning them starts, see opaqueEffects.
	model, site, own float64
}

// opaquePoint is what a form sees of a Config.
type opaquePoint struct {
	batch   float64 // samples per micro-batch and replica
	accum   float64 // micro-batches per step
	devices float64 // replicas
	nodes   float64 // 1 where the placement is not recorded
	perNode float64 // devices on the node with most
	servers float64 // parameter servers, 0 = replicas exchange gradients themselves
	volume  float64 // parameters over opaqueParams, 1 where not known
	inside  float64 // opaqueIntraBps over the bandwidth in a node, 1 where not known
	between float64 // opaqueInterBps over the bandwidth between nodes, 1 where not known
}

// What constants are given for: a ResNet-50 on devices behind PCIe 3.0 x16 in
// nodes with 50 Gb/s.
const (
	opaqueParams   = 25.6e6
	opaqueIntraBps = 15.75e9
	opaqueInterBps = 6.25e9
)

// opaqueFormOf returns the form of c and what it sees of it; nil for a plan that
// is more than data parallel, and for asynchronous updates.
func opaqueFormOf(c *spec.Config) (*opaqueForm, opaquePoint) {
	p := c.Plan.Normal()
	if p.CheckBounds() != nil || p.Devices() != p.DP || p.EP != 1 || p.ZeRO != 0 || p.Offload != spec.OffloadNone ||
		p.Recompute != spec.RecomputeNone || p.Async {
		return nil, opaquePoint{}
	}
	x := opaquePoint{
		batch: float64(p.MicroBatch), accum: float64(p.AccumSteps), devices: float64(p.DP), servers: float64(p.ParamServers),
		nodes: 1, perNode: float64(p.DP),
		volume:  ratio(c.Model.Params(), opaqueParams),
		inside:  ratio(opaqueIntraBps, c.Link.IntraBps),
		between: ratio(opaqueInterBps, c.Link.InterBps),
	}
	if total, nodes, most, _ := c.Shape.Stats(); total == p.DP {
		x.nodes, x.perNode = float64(nodes), float64(most)
	}
	if p.ParamServers > 0 {
		return serversForm, x
	}
	return allReduceForm, x
}

// ratio returns a/b, 1 where one of them is not a positive number, and within
// 1e±6.
func ratio(a, b float64) float64 {
	if !(a > 0 && b > 0) || math.IsInf(a, 1) || math.IsInf(b, 1) {
		return 1
	}
	return math.Max(1e-6, math.Min(a/b, 1e6))
}

// overlapped returns (a^γ + b^γ)^(1/γ) for a > 0, b >= 0 and γ >= 1, and the
// derivatives of its logarithm by the logarithms of a and b and by γ.
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
