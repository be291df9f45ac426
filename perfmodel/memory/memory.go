package memory

import (
	"cmp"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// GiB is 2^30 bytes.
const GiB = 1 << 30

// Estimate returns the peak memory of c. The error wraps perfmodel.ErrNotCovered if the model's size is
// unknown.
func Estimate(c spec.Config) (Breakdown, error) {
	e, err := For(c)
	if err != nil {
		return Breakdown{}, err
	}
	return e.Plan(c.Plan), nil
}

// Estimator estimates the memory of many plans for one model, sequence length, accelerator and training stack.
// It is immutable and safe for concurrent use.
type Estimator struct {
	shape   bool // count per tensor; otherwise use opaqueActivations
	guessed bool // layers or width are guessed
	ownSeq  int  // spec.Model.SeqLen
	seq     float64
	latent  spec.Latent // KVRank 0 = other attention
	ssmIn   float64     // width of the input projection of a state-space mixer
	ssm     float64     // inner width of the mixer
	layers  float64
	hidden  float64
	ffn     float64
	heads   float64
	kv      float64
	head    float64
	vocab   float64
	rows    int // of the embedding: the vocabulary

	mlp       float64 // activations kept per MLP, in multiples of its inner width: 2, gated 3
	masks     float64 // dropout masks per layer, in multiples of the hidden width
	leading   int     // layers with a dense MLP before the first with experts; 0 if both alternate
	experts   float64 // routed experts of a layer
	topK      float64 // routed experts per token
	imbalance float64 // see spec.Model.Imbalance, at least 1
	shared    float64 // experts that process every token
	expertFFN float64
	expertIn  float64 // width of a routed expert's input and output

	ahead   span    // layers of the modules for multi-token prediction, which follow the model's own
	project float64 // parameters of the projections of these modules

	w        weights
	adapter  spec.Adapter
	adapters struct{ dense, expert float64 } // their parameters, those of routed experts apart

	flops    float64 // forward FLOPs per sample of a model without a shape
	perToken float64 // the same per token where only that is known, else 0
	nn       int     // layers with those ahead as an int, for the split into stages
	alone    int     // spec.Config.AloneStage
	*variant         // the first of the choices
	of       *stack.Choices
	rest     []variant  // of each of the choices; nil if there is only one
	old      bool       // the device is older than fused attention
	turns    bool       // the device multiplies 8-bit matrices in any layout
	cpu      bool       // the device is cores of a CPU
	domain   int        // devices that a scale-up link joins; 0 unless a stack shards inside a domain
	leastSD  float64    // the smallest logSD of the choices
	kept     *keptOwned // nil outside of mean
}

// For returns the Estimator for the model, sequence length, accelerator and stack of c, with the shipped
// calibration. It ignores the plan, and the shape unless ByShape is true. For one rank alone (spec.Config.AloneStage) the peak is that of its stage. The error wraps perfmodel.ErrNotCovered if the model's size is unknown.
func For(c spec.Config) (Estimator, error) { return Shipped().For(c) }

// For returns the Estimator for the model, sequence length, accelerator and stack of c, as the function For.
func (cal *Calibration) For(c spec.Config) (Estimator, error) {
	m, guessed := GuessShape(c.Model)
	e := Estimator{of: stack.Of(c.Framework, c.Accelerator.Arch), old: beforeFused(c.Accelerator.Arch), turns: anyLayout(c.Accelerator.Arch), cpu: c.Accelerator.IsCPU(), ownSeq: m.SeqLen, nn: m.Layers, alone: c.AloneStage}
	v := cal.variantsOf(e.of)
	e.variant, e.rest, e.leastSD = &v.first, v.rest, v.leastSD
	if v.hybrid {
		e.domain = c.Accelerator.Domain(cmp.Or(c.Shape.Least(), usualNode))
	}
	e.w = weightsOf(m)
	e.adapter = m.Adapter
	e.adapters.dense, e.adapters.expert = m.AdapterParams()
	if e.w.total() <= 0 {
		return e, fmt.Errorf("memory: model %s has neither layers and hidden size nor a parameter count: %w", m.Name, perfmodel.ErrNotCovered)
	}
	if !countable(&m) {
		if e.flops = m.FLOPsPerSample; e.flops <= 0 {
			e.perToken = 2 * m.ActiveParams()
		}
		return e.AtSeq(c.SeqLen), nil
	}
	e.shape, e.guessed = true, guessed && (c.Model.Layers == 0 || c.Model.Hidden == 0)
	e.layers, e.hidden, e.ffn = float64(m.Layers), float64(m.Hidden), float64(m.FFN)
	e.heads, e.kv, e.head, e.vocab = float64(m.Heads), float64(m.KV()), float64(m.Head()), float64(m.Vocab)
	e.rows = m.Vocab
	e.latent, _ = m.Latent()
	e.mlp, e.masks = 2, 2
	if m.GatedMLP {
		e.mlp, e.masks = 3, 0 // gated models are trained without dropout
	}
	if m.SSMLayers > 0 {
		e.ssm, e.ssmIn, e.masks = float64(m.SSMHeads*m.SSMHeadDim), m.SSMIn(), 0
	}
	e.leading = m.LeadingDense()
	if m.Experts > 0 {
		e.experts, e.topK, e.shared = float64(m.Experts), float64(m.ExpertsPerToken), float64(m.SharedExperts)
		e.imbalance = max(m.Imbalance, 1)
		e.expertFFN, e.expertIn = float64(m.ExpertFFN), float64(m.ExpertIn())
		e.masks = 0
	}
	if dense, moe := m.AheadLayers(); dense+moe > 0 {
		e.ahead = span{dense: float64(dense), moe: float64(moe)}
		e.nn += dense + moe
		e.project = float64(m.MTPLayers) * 2 * e.hidden * e.hidden
	}
	return e.AtSeq(c.SeqLen), nil
}

// usualNode is the number of devices of a node where no shape is known.
const usualNode = 8

// ByShape reports whether e depends on the shape that it was made for: the training stack shards inside a node.
func (e *Estimator) ByShape() bool { return e.domain > 0 }

// AtSeq returns e for samples of seq tokens; 0 = the model's own length.
func (e *Estimator) AtSeq(seq int) Estimator {
	out := *e
	out.seq = float64(max(cmp.Or(seq, e.ownSeq), 1))
	if e.perToken > 0 {
		out.flops = e.perToken * out.seq
	}
	return out
}

// countable reports whether m's parameters and activations can be counted per layer.
func countable(m *spec.Model) bool {
	return m.HasShape() && (m.Heads > 0 || m.SSMLayers > 0 && m.AttentionLayers() == 0)
}

// Plan returns the peak over the pipeline stages of plan p. The fullest stage is the first (embedding, most
// micro-batches in flight), the first with an extra layer (see stageLayers), or the last (head,
// loss). If the training stack is not stated, it is the weighted geometric mean over the choices, and LogSD has the
// spread between them.
func (e *Estimator) Plan(p spec.Plan) Breakdown {
	return e.mean(&p, figure{what: fullest})
}

// mean returns the mean of a figure over the choices of stacks.
func (e *Estimator) mean(p *spec.Plan, count figure) Breakdown {
	if e.rest == nil {
		of := e.normal(*p)
		return count.of(e, &of)
	}
	var mean geometricMean
	normal := p.Normal()
	one := *e
	one.kept = &keptOwned{}
	for i, w := range &e.of.Weight[stack.UseOf(&normal)] {
		if w == 0 {
			continue
		}
		one.variant = &e.rest[i]
		of := normal
		one.apply(&of)
		b := count.of(&one, &of)
		mean.add(&b, w)
	}
	return mean.breakdown()
}

// most returns the stage with the largest figure of a kind.
func (e *Estimator) most(p *spec.Plan, kind stack.Memory) (best Breakdown) {
	stages, n := e.fullestStages(p)
	for i, stage := range stages[:n] {
		if b := e.stage(p, stage); i == 0 || b.Of(kind) > best.Of(kind) {
			best = b
		}
	}
	return best
}

// maxFullest is the largest number of stages that may be the fullest.
const maxFullest = 5

// fullestStages returns the candidates for the fullest stage, or the stage of the rank that runs alone.
func (e *Estimator) fullestStages(p *spec.Plan) (out [maxFullest]int, n int) {
	if e.alone > 0 {
		out[0] = e.alone - 1
		return out, 1
	}
	if n = 1; p.PP == 1 {
		return out, n
	}
	try := func(stage int) { out[n], n = stage, n+1 }
	try(p.PP - 1)
	if !e.shape {
		return out, n
	}
	if over := e.nn % p.PP; over > 0 && over < p.PP-1 {
		try(p.PP - 1 - over)
	}
	if e.stack.middle {
		try(max(p.PP-e.nn/p.PP, 1)) // the first with an extra layer
	}
	if e.leading > 0 {
		if first := e.firstWithoutDense(p); first > 0 && first < p.PP-1 {
			try(first)
		}
	}
	return out, n
}

// Stages returns the breakdown of every pipeline stage of p, first to last. If the training stack is not stated, each
// is a mean, and Plan may be more than the largest of them.
func (e *Estimator) Stages(p spec.Plan) []Breakdown {
	out := make([]Breakdown, max(p.PP, 1))
	for i := range out {
		out[i] = e.mean(&p, figure{what: oneStage, stage: i})
	}
	return out
}

// normal returns p with defaults written out and with the settings that the stack always uses.
func (e *Estimator) normal(p spec.Plan) spec.Plan {
	p = p.Normal()
	e.apply(&p)
	return p
}

// apply changes p to the settings that the stack always uses.
func (e *Estimator) apply(p *spec.Plan) {
	p.SequenceParallel = p.SequenceParallel || e.stack.alwaysSequence && p.TP > 1
	if e.stack.hybrid {
		p.ShardInside(e.domain)
	}
}

// Bytes returns Plan(p).Total().
func (e *Estimator) Bytes(p spec.Plan) float64 { b := e.Plan(p); return b.Total() }

// Measured returns the peak of plan p that a figure of the given kind shows: Allocated, Reserved or Device, and the
// kind that the training stack itself reports if it is "". The peak is that of the stage which is the fullest by
// this figure.
func (e *Estimator) Measured(p spec.Plan, kind stack.Memory) float64 {
	b := e.mean(&p, figure{what: printed, kind: kind})
	return b.Total()
}

// KindOf returns what the peak of a measurement counts: its EnvMemKind, "" if it has none.
func KindOf(m *spec.Measurement) stack.Memory { return stack.Memory(m.Env[spec.EnvMemKind]) }

// bucketBytes is the size of one gradient bucket. DDP keeps two, but no more than the size of the gradients.
// Megatron Core's buckets are parts of its gradient buffer.
const bucketBytes = 64 << 20

func (e *Estimator) stage(p *spec.Plan, stage int) Breakdown {
	s := e.statesOf(p, stage)
	var b Breakdown
	e.peakOf(p, &s, &b)
	return b
}

// stageStates is what a stage holds with samples of any length.
type stageStates struct {
	layers span
	own    owned
	b      Breakdown // the parts that do not depend on the length
}

func (e *Estimator) statesOf(p *spec.Plan, stage int) (s stageStates) {
	s.b.Stage, s.b.LogSD = stage, e.logSD
	s.layers = e.layersOn(p, stage)
	s.own = e.own(p, s.layers, stage)
	e.states(&s.b, p, s.own)
	s.b.Outside = e.outside(p)
	return s
}

// peakOf sets b to the peak of a stage.
func (e *Estimator) peakOf(p *spec.Plan, s *stageStates, b *Breakdown) {
	*b = s.b
	own, freed := &s.own, b.Gradients
	e.activations(b, p, s.layers, own)
	freed -= b.Gradients
	if p.DP*p.CP > 1 && e.stack.bucket == 0 && !e.stack.core {
		b.Buffers += min(2*bucketBytes, 4*(own.trained+own.trainedExpert))
	}
	// Optimizer states are allocated once and in large blocks. Parameters are copied into flat buffers when a run
	// starts, and their first blocks remain reserved; all others come and go in every step, and so do gradients that
	// are not there at the peak.
	moved := b.Activations + b.Working + b.Gathered + b.Buffers + b.Parameters + b.Gradients + freed
	if e.guessed {
		b.LogSD = math.Hypot(b.LogSD, guessedSpread*(b.Activations+b.Working)/(moved+b.Optimizer))
	}
	b.Overhead += b.Outside + e.k.Fragmentation*moved + e.k.Unseen*(moved+b.Optimizer)
}

// own returns the parameters on a device, with the vocabulary as the stack pads it. Adapters are split like the
// matrices they belong to.
func (e *Estimator) own(p *spec.Plan, layers span, stage int) owned {
	pad := e.padded(p)
	if e.kept == nil {
		return e.countOwned(p, layers, stage, pad)
	}
	k := &e.kept[min(stage, 1)]
	if !k.known || k.stage != stage || k.pad != pad {
		k.known, k.stage, k.pad, k.owned = true, stage, pad, e.countOwned(p, layers, stage, pad)
	}
	return k.owned
}

// keptOwned keeps the parameters on a device of the first stage of one plan, and of the last one counted: most stacks
// have the same.
type keptOwned [2]struct {
	known bool
	stage int
	pad   float64
	owned owned
}

func (e *Estimator) countOwned(p *spec.Plan, layers span, stage int, pad float64) owned {
	o := e.w.onDevice(p, layers, stage, pad)
	if stage == headStage(p) {
		o.dense += e.project / float64(p.TP)
		o.linear += e.project / float64(p.TP)
	}
	o.trained, o.trainedExpert = o.dense, o.expert
	if e.adapter.Kind != spec.FullTraining {
		o.trained = e.adapters.dense / float64(p.TP) * layers.all() / e.layers
		o.trainedExpert = e.adapters.expert / expertShards(p) * layers.moe / max(e.w.layers.moe, 1)
	}
	return o
}

// vocabMultiple is the number that the rows of an embedding on each device are a multiple of: the default of
// --make-vocab-size-divisible-by (megatron/training/arguments.py).
const vocabMultiple = 128

// padded returns the ratio of the padded to the stated vocabulary.
func (e *Estimator) padded(p *spec.Plan) float64 {
	if multiple := vocabMultiple * p.TP; e.stack.padsVocab && e.rows > 0 && e.rows%multiple != 0 {
		return float64((e.rows/multiple+1)*multiple) / e.vocab
	}
	return 1
}

// outside returns the bytes outside of the training stack's allocator: the device context, and the
// communicators of each kind of parallelism. CPUs have neither; gloo sends directly from the tensors.
func (e *Estimator) outside(p *spec.Plan) float64 {
	if e.cpu {
		return 0
	}
	if e.alone > 0 {
		return e.k.ContextBytes
	}
	n := 0.0
	for _, degree := range [2]int{p.DP * p.CP, p.TP} {
		if degree > 1 {
			n += e.stack.communicators
		}
	}
	if p.PP > 1 {
		n += e.stack.stageCommunicators
	}
	return e.k.ContextBytes + n*e.k.CommunicatorBytes
}
