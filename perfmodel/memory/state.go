package memory

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// weights are the parameters of a model, grouped by the way they are split over devices.
type weights struct {
	query  float64 // query and output projections of one layer, split by TP
	kv     float64 // key and value projections, split by TP up to the number of key/value heads
	down   float64 // projections to the compressed widths of latent attention, on every rank
	ssm    float64 // one state-space mixer, split by TP
	mlp    float64 // dense MLP of one layer, split by TP
	shared float64 // shared experts of one layer with experts, split by TP
	expert float64 // routed experts of one layer with experts, split by EP
	one    float64 // one routed expert
	fixed  float64 // norms of one layer, on every rank
	router float64 // router of one layer with experts, on every rank
	embed  float64 // one embedding matrix, split by TP
	tower  float64 // tower and its projector, on the first stage, split by TP
	tied   bool
	kvHead float64
	layers span
	dense  []block // of the layers without experts
	moe    []block // of those with experts
	first  float64 // share of an MLP's parameters in its first matrix
	opaque float64 // all parameters of a model without a shape
	scale  float64 // published count over the sum of the parts above
}

func weightsOf(m spec.Model) weights {
	if !countable(&m) {
		return weights{opaque: m.Params(), scale: 1}
	}
	h, d := float64(m.Hidden), float64(m.Head())
	w := weights{
		query:  2 * h * float64(m.Heads) * d,
		kv:     2 * h * float64(m.KV()) * d,
		ssm:    m.SSMParams(),
		mlp:    m.DenseMLPParams(),
		fixed:  4 * h,
		embed:  float64(m.Vocab) * h,
		tower:  m.Tower.Params(),
		tied:   m.TiedEmbeddings,
		kvHead: float64(m.KV()),
		layers: span{dense: float64(m.Layers - m.MoELayers()), moe: float64(m.MoELayers())},
		first:  1. / 2,
		scale:  1,
	}
	if m.GatedMLP {
		w.first = 2. / 3
	}
	if l, ok := m.Latent(); ok {
		w.query, w.kv, w.kvHead = l.QIn*l.Q+h*l.Out, l.KVRank*l.KV, float64(m.Heads)
		w.down = h * l.Down()
	}
	w.dense, w.moe = blocksOf(&m)
	if m.Experts > 0 {
		w.one = m.ExpertParams()
		w.shared, w.expert = m.SharedExpertParams(), float64(m.Experts)*w.one
		w.router = h * float64(m.Experts)
	}
	if m.Kind == spec.EncoderDecoder { // cross attention in the decoder half
		w.query, w.kv = 1.5*w.query, 1.5*w.kv
	}
	if m.ParamCount > 0 && w.total() > 0 && !contradicts(m, w.total(), w.embeddings()) {
		w.scale = m.ParamCount / w.total()
	}
	return w
}

// contradicts reports whether the published parameter count of a dense model contradicts its layers: all values
// for counting are known, and the two differ by more than a quarter, or the published count is closer to that
// without embeddings, which some publications leave out. Then the counted number is used. A token passes more
// parameters than there are if layers share weights.
func contradicts(m spec.Model, counted, embeddings float64) bool {
	if m.ActiveParamCount > m.ParamCount || m.Experts > 0 || m.Vocab == 0 || m.Kind != spec.Decoder && m.Kind != spec.Encoder {
		return false
	}
	r := m.ParamCount / counted
	return r > 1.25 || r < 0.8 || math.Abs(math.Log(m.ParamCount/(counted-embeddings))) < math.Abs(math.Log(r))
}

// embeddings returns the parameters of the embedding and head matrices of the whole model.
func (w *weights) embeddings() float64 {
	if w.tied {
		return w.embed
	}
	return 2 * w.embed
}

func (w *weights) total() float64 {
	if w.opaque > 0 {
		return w.opaque
	}
	n := w.embeddings() + w.tower
	for kind, layers := range w.layers.kinds() {
		for _, b := range w.blocks(kind) {
			dense, expert := w.of(b, 1, 1, 1)
			n += layers * b.share * (dense + expert)
		}
	}
	return w.scale * n
}

// blocks returns the blocks of the layers of a kind, see span.kinds.
func (w *weights) blocks(kind int) []block {
	if kind == 0 {
		return w.dense
	}
	return w.moe
}

// of returns the parameters that a device holds of one layer, the routed experts apart: 1/t of the matrices that TP
// splits, 1/kv of keys and values, and 1/e of the experts.
func (w *weights) of(b block, t, kv, e float64) (dense, expert float64) {
	dense = w.fixed + w.split(b, t, kv)
	if b.attention {
		dense += w.down
	}
	if b.routed {
		dense += w.router
		expert = w.expert / e
	}
	return dense, expert
}

// split returns the parameters of the matrices of b that TP splits.
func (w *weights) split(b block, t, kv float64) (n float64) {
	if b.attention {
		n += w.query/t + w.kv/kv
	}
	if b.ssm {
		n += w.ssm / t
	}
	if b.mlp {
		n += w.mlp / t
	}
	if b.routed {
		n += w.shared / t
	}
	return n
}

// owned are the parameters on one device before data parallel sharding.
type owned struct {
	dense  float64 // replicated over DP x CP
	expert float64 // replicated ExpertReplicas times
	layer  float64 // of the largest layer, dense and expert: the unit that ZeRO-3 gathers
	head   float64 // the embedding or head matrix on this device: the other unit

	trained, trainedExpert float64 // of dense and expert: all, or the adapters, which come on top

	root float64 // all embedding and head matrices on this device

	linear, layerLinear float64 // of dense and of layer, experts included: matrices of layers
	largest             float64 // of the matrices that are multiplied at once

	// matrices are the parameters of the distinct weight matrices of the layers: those of one layer of each kind, with
	// one routed expert.
	matrices float64
}

// expertShards returns the number of devices over which the experts of one layer are split. Without expert
// parallelism TP splits each expert like a dense MLP; with it, they spread over EP devices, or TP if that is
// more.
func expertShards(p *spec.Plan) float64 { return float64(max(p.EP, p.TP)) }

// onDevice returns the parameters on a device, with the embedding times pad.
func (w *weights) onDevice(p *spec.Plan, layers span, stage int, pad float64) (o owned) {
	t := float64(p.TP)
	if w.opaque > 0 {
		o.dense = w.opaque / t / float64(p.PP)
		o.layer = o.dense / 8 // gathered in eighths, since the layers of an opaque model are unknown
		return o
	}
	kv, has := min(t, w.kvHead), block{}
	for kind, n := range layers.kinds() {
		if n == 0 {
			continue
		}
		for _, b := range w.blocks(kind) {
			dense, expert := w.of(b, t, kv, expertShards(p))
			o.dense += w.scale * n * b.share * dense
			o.expert += w.scale * n * b.share * expert
			linear := w.split(b, t, kv)
			if b.attention {
				linear += w.down
			}
			o.linear += w.scale * n * b.share * linear
			if whole := w.scale * (dense + expert); whole > o.layer {
				o.layer, o.layerLinear = whole, w.scale*(linear+expert)
			}
			o.largest = max(o.largest, w.scale*w.largest(b, t, expertShards(p)))
			has = has.or(b)
		}
	}
	o.matrices = w.split(has, t, kv)
	if has.routed {
		o.matrices += w.one
	}
	o.matrices *= w.scale
	if stage == 0 {
		o.dense += w.scale * w.tower / t
	}
	last := stage == headStage(p)
	if stage > 0 && !last {
		return o
	}
	o.head = w.scale * w.embed * pad / t
	o.root = o.head
	if stage == 0 && last && !w.tied {
		o.root *= 2 // tied matrices are one copy on one stage, two on two
	}
	o.dense += o.root
	return o
}

// states fills parameters, gradients, optimizer states, gathered units and their host copies. Mixed-precision
// Adam has, per parameter, 2 bytes of weights, 2 or 4 of gradients and 12 of optimizer state (fp32 master
// weight, two moments); fp32 training has 4, 4 and 8. See stacks for exceptions. ZeRO-1 shards the optimizer
// states over the data parallel ranks or those of a shard group, ZeRO-2 the gradients too, ZeRO-3 the weights
// too. Sources: Rajbhandari et al. 2020, section 3 and figure 1; Zhang et al., "MiCS", VLDB 2022, section 3.1.
//
// Frozen weights have neither gradients nor optimizer states: they take 16 bits, or fewer, see eightBit. Their adapters
// have 2 bytes of weights, and gradients and optimizer states in fp32. ZeRO-3 gathers frozen weights too, and reduces
// nothing for them.
func (e *Estimator) states(b *Breakdown, p *spec.Plan, o owned) {
	weight, grad, opt, gradCopy := e.stack.perParameter(p)
	pick := func(stage int, dense, expert float64) float64 {
		if p.ZeRO >= stage {
			return dense/float64(p.Shards()) + expert/ExpertSharding(p)
		}
		return dense + expert
	}
	adapted, gathers := e.adapter.Kind != spec.FullTraining, p.ZeRO == 3 && p.Shards() > 1
	if adapted {
		weight, grad, opt = 2, 4, 12
		if e.adapter.Kind == spec.QLoRA {
			b.Working = 2 * o.layer // dequantized
		}
		b.Parameters = 2 * pick(3, o.trained, o.trainedExpert)
	}
	b.Parameters += weight * pick(3, o.dense, o.expert)
	low := e.eightBit(p)
	if weight == 2 {
		b.Parameters -= low.saved * pick(3, o.linear, o.expert)
	}
	b.Gradients = grad * pick(2, o.trained, o.trainedExpert)
	updated := pick(1, o.trained, o.trainedExpert)
	b.Optimizer = opt * updated
	switch {
	case gathers && adapted:
		all, linear := e.units(p, o)
		b.Gathered = e.k.Gathered * (weight*all - low.saved*linear)
	case gathers:
		e.gathered(b, p, o, grad, low)
	default:
		e.copies(b, p, o, gradCopy)
	}
	b.Working += low.onUse * o.largest
	e.offload(b, p, o, updated)
}

// freesGradients reports whether a step begins without gradients and each is made once, in the only backward pass.
func (e *Estimator) freesGradients(p *spec.Plan) bool {
	return e.stack.freesGradients && p.AccumSteps == 1 && p.PP == 1 && (p.DP*p.CP == 1 || p.ZeRO == 3 && e.stack.fsdp)
}

// emptyGradients reports whether autograd gets empty tensors in place of the gradients of weights, see traits.core.
func (e *Estimator) emptyGradients(p *spec.Plan) bool {
	return e.stack.core && p.ZeRO < 3 && e.adapter.Kind == spec.FullTraining
}

// units returns the parameters that ZeRO-3 has gathered at once, and those of them in matrices of layers: without a
// pipeline the unit being computed and the one prefetched, else the whole stage.
func (e *Estimator) units(p *spec.Plan, o owned) (all, linear float64) {
	if p.PP > 1 {
		return o.dense + o.expert, o.linear + o.expert
	}
	if other := max(o.head, e.rootOf(o)); other > o.layer {
		return o.layer + other, o.layerLinear
	}
	return 2 * o.layer, 2 * o.layerLinear
}

// gathered fills the memory of the units that ZeRO-3 has gathered, in 16 or 8 bits. The unit's unreduced gradients, in 16
// bits and copied for the reduction, count as working set, since the loss has none. The head is a separate unit. With a
// pipeline, gradients accumulate unsharded.
func (e *Estimator) gathered(b *Breakdown, p *spec.Plan, o owned, grad float64, low eightBit) {
	all, linear := e.units(p, o)
	if p.PP > 1 {
		b.Gathered = e.k.Gathered * ((2+grad)*all - low.saved*linear)
		b.Working = grad * o.layer
		return
	}
	b.Gathered = e.k.Gathered * (2*all - low.saved*linear)
	b.Working = (2 + grad) * max(o.layer, o.head)
}

// rootOf returns the parameters of the matrices that stay gathered between forward and backward pass.
func (e *Estimator) rootOf(o owned) float64 {
	if e.stack.keepsRoot {
		return o.root
	}
	return 0
}

// copies fills the flat copies in which DeepSpeed reduces gradients and gathers weights, and the temporary copy
// of the largest parameter's gradient. Each copy has a different size, so the caching allocator cannot reuse
// its blocks: all of them add to the peak although they follow each other.
func (e *Estimator) copies(b *Breakdown, p *spec.Plan, o owned, gradCopy float64) {
	if e.stack.bucket == 0 {
		return
	}
	held := o.trained + o.trainedExpert
	reduced := gradCopy * min(e.stack.bucket, held)
	gathered := 0.0
	if p.ZeRO > 0 {
		gathered = elem(p) * min(e.stack.bucket, held)
	}
	b.Buffers += reduced + gathered
	if e.adapter.Kind == spec.FullTraining {
		b.Buffers += gradCopy * max(o.head, o.layer/4)
	}
}

// hostPerParameter is the number of bytes that an optimizer on the host keeps per parameter of its shard: fp32
// weights, gradients and two moments. Source: deepspeed/runtime/zero/stage_1_and_2.py. Ren et al. 2021 count 14
// bytes, with gradients in 16 bits.
const hostPerParameter = 16

// offload moves optimizer states, and parameters if offloaded, to the host. updated is the number of parameters
// that this device's optimizer updates. Sharded gradients are sent to the host as they are reduced, which
// leaves two buckets on the device. Sources: Ren et al., "ZeRO-Offload", ATC 2021, section 4; Rajbhandari et
// al., "ZeRO-Infinity", SC 2021, section 5.
func (e *Estimator) offload(b *Breakdown, p *spec.Plan, o owned, updated float64) {
	if p.Offload == spec.OffloadNone {
		return
	}
	b.HostBytes, b.Optimizer = hostPerParameter*updated, 0
	if p.ZeRO >= 2 || p.DP*p.CP == 1 {
		b.Gradients = min(b.Gradients, 4*bucketBytes)
	}
	if p.Offload == spec.OffloadParams {
		b.HostBytes += b.Parameters
		b.Parameters = 0
		b.Gathered = max(b.Gathered, 4*(o.layer+max(o.layer, o.head)))
	}
}

// Params are numbers of parameters.
type Params struct {
	Dense  float64 // replicated over DP x CP
	Expert float64 // of routed experts, replicated ExpertReplicas times
	Linear float64 // of Dense: matrices of layers, 0 of adapters
}

// Owned returns the parameters on one device of the first pipeline stage, or of that of a rank alone, before data parallel sharding, and those with
// gradients and optimizer state: all, or the adapters in their place.
func (e *Estimator) Owned(p *spec.Plan) (all, trained Params) {
	stage := max(e.alone-1, 0)
	o := e.own(p, e.layersOn(p, stage), stage)
	all, trained = Params{o.dense, o.expert, o.linear}, Params{Dense: o.trained, Expert: o.trainedExpert}
	if e.adapter.Kind == spec.FullTraining {
		trained.Linear = o.linear
	}
	return all, trained
}

// headStage returns the stage with the vocabulary head and the loss: the last, but the first if the schedule is V-shaped.
func headStage(p *spec.Plan) int {
	if p.Schedule.VShaped() {
		return 0
	}
	return p.PP - 1
}

// ExpertSharding returns the number of devices over which ZeRO shards the experts of one device: those in its
// shard group that hold the same experts, at least 1.
func ExpertSharding(p *spec.Plan) float64 {
	return max(float64(p.Shards()*p.TP)/expertShards(p), 1)
}

// ExpertReplicas returns the number of devices that hold a copy of one expert: DP x CP x TP over the expert
// shards, at least 1.
func ExpertReplicas(p *spec.Plan) float64 {
	return max(float64(p.DP*p.CP*p.TP)/expertShards(p), 1)
}
