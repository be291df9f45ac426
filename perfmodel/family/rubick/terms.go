package rubick

import (
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Defaults for values that a Config lacks.
const (
	assumedSeq      = 512 // tokens per sample
	assumedParams   = 100e6
	assumedPeak     = 100e12 // FLOP/s
	assumedMemBps   = 1e12   // bytes/s
	assumedIntraBps = 16e9   // PCIe 3 x16
	assumedInterBps = 12.5e9 // 100 Gb/s
	assumedPerNode  = 8      // devices of a node
	assumedNICs     = 4      // network cards of a node; two devices share one
	assumedThreads  = 12     // CPU threads per device: 96 on a node of 8
)

// configTerms holds the terms of the formula in rubick.go for a Config, in seconds for parameters of 1, except
// optim (seconds per byte of traffic), hostStep and hostCopy (parameters).
type configTerms struct {
	compute              float64
	intra, inter         float64 // tensor and pipeline parallel traffic, inside and between nodes
	syncIntra, syncInter float64 // gradient synchronization
	optim                float64
	hostStep, hostCopy   float64
	modelParallel        bool
	uneven               bool

	seen    featureSet
	size    size
	assumed assumptions
	place   [9]float64 // position for the residual process; one unit is one mode, or a factor of 2 or 4
}

// assumptions says which values of a Config are assumed. The priors of parameters that scale them are wider
// then.
type assumptions struct {
	work         bool // FLOPs of a sample
	params       bool // parameters
	intra, inter bool // link rates
}

// names lists the assumed values.
func (g assumptions) names() []string {
	var out []string
	if g.work {
		out = append(out, fmt.Sprintf("FLOPs of a sample (%d tokens)", assumedSeq))
	}
	if g.params {
		out = append(out, fmt.Sprintf("parameters (%g)", float64(assumedParams)))
	}
	if g.intra {
		out = append(out, "link inside a node (the accelerator's own)")
	}
	if g.inter {
		out = append(out, fmt.Sprintf("link between nodes (%g bytes/s)", float64(assumedInterBps)))
	}
	return out
}

// newTerms returns the terms of c. If split is set, pipelines with a single micro-batch in their plan are fed
// sample by sample.
func newTerms(c *spec.Config, split bool) configTerms {
	p := c.Plan.Normal()
	if split && p.PP > 1 && p.AccumSteps == 1 {
		p.AccumSteps, p.MicroBatch = p.MicroBatch, 1
	}
	g := newLayout(c.Shape, p)
	var r configTerms
	r.modelParallel = p.TP*p.PP > 1
	r.uneven = g.uneven
	r.addCompute(c, p)
	r.addTensor(c, p, g)
	r.addPipeline(c, p, g)
	r.addSync(c, p, g)
	r.addUpdate(c, p)
	r.seen = featuresOf(p, g.nodes)
	r.size = size{p.Devices(), g.nodes, p.MicroBatch, seqOf(c)}
	r.assumed = assumptions{
		work:   c.Model.FLOPsPerSample == 0 && (c.Seq() == 0 || c.Model.Params() == 0),
		params: c.Model.Params() == 0,
		intra:  c.Link.IntraBps <= 0,
		inter:  c.Link.InterBps <= 0,
	}
	r.place = placeOf(c, p, g)
	return r
}

// rounds returns M, the number of micro-batch times per step on a pipeline: (m + (p-1)/v) / p (Narayanan et
// al., SC 2021, section 2.2).
func rounds(p spec.Plan) float64 {
	return (float64(p.AccumSteps) + float64(p.PP-1)/float64(p.VirtualStages)) / float64(p.PP)
}

// addCompute sets the compute term. Full recomputation repeats the forward pass, a third of forward and
// backward. Selective recomputation repeats the attention core, a third of TrainFLOPs without the part
// proportional to the parameters.
func (r *configTerms) addCompute(c *spec.Config, p spec.Plan) {
	flops := trainFLOPs(c)
	factor := 1.0
	switch p.Recompute {
	case spec.RecomputeFull:
		factor = 4.0 / 3
	case spec.RecomputeSelective:
		if c.Model.HasShape() && flops > 0 {
			factor += max(1-6*c.Model.ActiveParams()*float64(seqOf(c))/flops, 0) / 3
		}
	}
	r.compute = flops * factor * float64(p.MicroBatch) * rounds(p) / (peakOf(c) * float64(p.TP*p.CP))
}

// addTensor adds the all-reduces of tensor parallelism: four per layer and micro-batch, two more with full
// recomputation, of one activation each (Shoeybi et al., Megatron-LM, 2019, section 3). Stages with a group on
// more than one node have the speed of one network card.
func (r *configTerms) addTensor(c *spec.Config, p spec.Plan, g rankLayout) {
	if p.TP == 1 {
		return
	}
	ops := 4.0
	if p.Recompute == spec.RecomputeFull {
		ops = 6
	}
	layers, act := activation(c, p)
	t := float64(p.TP)
	bytes := layers * ops * act * 2 * (t - 1) / t * rounds(p)
	cross := g.straddling(p)
	r.intra += (1 - cross) * bytes / intraBps(c)
	r.inter += cross * bytes / (interBps(c) / assumedNICs)
}

// addPipeline adds the activations that cross stage boundaries, forward and backward: each boundary once while
// the pipeline fills and drains, and once more per further micro-batch, since sends block in the steady state.
// Two boundaries between nodes share a network card.
func (r *configTerms) addPipeline(c *spec.Config, p spec.Plan, g rankLayout) {
	if p.PP == 1 {
		return
	}
	_, act := activation(c, p)
	boundaries := float64(p.PP - 1)
	bytes := 2 * act * float64(p.VirtualStages) * (boundaries + float64(p.AccumSteps-1)) / boundaries
	between := float64(min(p.PP, g.nodes) - 1)
	r.intra += (boundaries - between) * bytes / intraBps(c)
	r.inter += between * bytes / (interBps(c) / assumedNICs / float64(min(2, g.least)))
}

// addSync adds the ring all-reduce of the gradients over DP·CP replicas: 2(n-1)/n of their bytes per device,
// and half as much again with ZeRO-3, which gathers the weights once more (Rajbhandari et al., ZeRO, 2020,
// section 7). Between nodes, all rings of a node share the network cards that its devices reach.
func (r *configTerms) addSync(c *spec.Config, p spec.Plan, g rankLayout) {
	n := float64(p.DP * p.CP)
	if n == 1 {
		return
	}
	bytes := 2 * (n - 1) / n * gradBytes(p) * paramsOf(c) / float64(p.TP*p.PP)
	if p.ZeRO == 3 {
		bytes *= 1.5
	}
	if g.stageInNode(p) {
		r.syncIntra = bytes / intraBps(c)
		return
	}
	rings := float64(min(p.TP, g.least))
	cards := min(assumedNICs, (g.least+1)/2)
	r.syncInter = bytes * rings / (interBps(c) * float64(cards) / assumedNICs)
}

// addUpdate sets the terms of the optimizer step, on the device or on the host.
func (r *configTerms) addUpdate(c *spec.Config, p spec.Plan) {
	whole := paramsOf(c) / float64(p.TP*p.PP)
	own := whole
	if p.ZeRO > 0 {
		own /= float64(p.DP * p.CP)
	}
	if p.Offload == spec.OffloadNone {
		r.optim = own / or(c.Accelerator.MemBps, assumedMemBps)
		return
	}
	threads := float64(assumedThreads)
	if c.Shape.CPUs > 0 {
		threads = float64(c.Shape.CPUs) / float64(p.Devices())
	}
	r.hostStep, r.hostCopy = own*assumedThreads/threads, whole
}

// placeOf returns the position of a configuration for the residual process.
func placeOf(c *spec.Config, p spec.Plan, g rankLayout) [9]float64 {
	return [9]float64{
		flag(p.ZeRO > 0),
		flag(p.Offload != spec.OffloadNone),
		flag(p.Recompute != spec.RecomputeNone),
		flag(p.TP*p.PP > 1),
		flag(g.uneven),
		math.Log2(float64(p.Devices())),
		math.Log2(float64(g.nodes)),
		math.Log2(float64(p.TP*p.PP)) / 2,
		math.Log2(float64(p.GlobalBatch())*max(float64(c.Seq()), 1)) / 2,
	}
}

// likeness returns the correlation of the residuals of two configurations.
func (r *configTerms) likeness(o *configTerms) float64 {
	d := 0.0
	for i, v := range r.place {
		d += math.Abs(v - o.place[i])
	}
	return math.Exp(-d / reach)
}

// activation returns the number of layers, and the bytes of one micro-batch's hidden state on one device of a
// context-parallel group. If the model has no shape, it is assumed to be a dense transformer with P =
// 12·layers·hidden² and hidden = 64·layers.
func activation(c *spec.Config, p spec.Plan) (layers, bytes float64) {
	layers, hidden := float64(c.Model.Layers), float64(c.Model.Hidden)
	if !c.Model.HasShape() {
		hidden = math.Cbrt(paramsOf(c) * 64 / 12)
		layers = hidden / 64
	}
	return layers, gradBytes(p) * float64(p.MicroBatch) * float64(seqOf(c)) * hidden / float64(p.CP)
}

// trainFLOPs returns the FLOPs of forward and backward of one sample.
func trainFLOPs(c *spec.Config) float64 {
	if f := c.Model.TrainFLOPs(seqOf(c)); f > 0 {
		return f
	}
	return assumedPeak / 1000
}

func paramsOf(c *spec.Config) float64 { return or(c.Model.Params(), assumedParams) }

func seqOf(c *spec.Config) int {
	if s := c.Seq(); s > 0 {
		return s
	}
	return assumedSeq
}

// gradBytes returns the size of one gradient or activation element: 4 in single precision, else 2.
func gradBytes(p spec.Plan) float64 {
	if p.Precision == "" {
		return 2
	}
	return max(p.Precision.Bytes(), 2)
}

// peakOf returns the dense rate of c's precision, bf16 if it names none.
func peakOf(c *spec.Config) float64 {
	prec := c.Plan.Precision
	if prec == "" {
		prec = spec.BF16
	}
	return or(c.Accelerator.Peak(prec), assumedPeak)
}

func intraBps(c *spec.Config) float64 {
	return or(c.Link.IntraBps, or(c.Accelerator.ScaleUpBps, or(c.Accelerator.HostBps, assumedIntraBps)))
}

func interBps(c *spec.Config) float64 { return or(c.Link.InterBps, assumedInterBps) }

func or(v, otherwise float64) float64 {
	if v > 0 {
		return v
	}
	return otherwise
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
