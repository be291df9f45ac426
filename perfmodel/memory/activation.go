package memory

import "github.com/pacer-ml/pacer/perfmodel/spec"

// elem returns the size of one activation, in bytes.
func elem(p *spec.Plan) float64 {
	if halfPrecision(p.Precision) {
		return 2
	}
	return 4
}

// activations fills Activations, Working and the pipeline receive buffers of
// one stage. It follows the stage's memory over a step: activations accumulate up to the end of the last forward
// pass in flight, and the peak is at one of four points after it:
//
//	the loss, and the backward pass of the head (last stage)
//	the backward pass of the stage's last layer
//	the backward pass of its last dense layer, if layers with experts come after it and are gone by then
//	the backward pass of its first layer, where each gradient is made in it: then all are there, and no activations
//
//	Activations = chunks x (layers/v x kept + out)
//	Working     = the largest need at one of these points, on top of Activations
//
//	chunks  model chunks in flight, see inFlight
//	v       chunks per stage
//	kept    bytes one layer keeps of one micro-batch, see layerBytes
//	out     the chunk's output, where the stack keeps it
//
// A layer's backward pass holds what it recomputed, its unreduced gradients under ZeRO-3 (already in Working
// when this is called) and the gradients of its widest tensors, see widest.
func (e *Estimator) activations(b *Breakdown, p *spec.Plan, layers span, own *owned) {
	stage := b.Stage
	if !e.shape {
		e.opaqueActivations(b, p, stage)
		return
	}
	tokens := float64(p.MicroBatch) * e.seq / float64(p.CP)
	a := elem(p)
	split := 1.0 // applies to tensors that tensor parallelism replicates
	if p.SequenceParallel {
		split = float64(p.TP)
	}
	input := a * tokens * e.hidden / split
	var dense, moe layerPeak
	if layers.dense > 0 {
		dense = e.meanPeak(p, tokens, a, split, e.w.dense)
	}
	if layers.moe > 0 {
		moe = e.meanPeak(p, tokens, a, split, e.w.moe)
	}
	v := float64(p.Chunks())
	offloads := e.stack.offloads && !e.cpu
	if e.leading > 0 && layers.moe >= v && layers.dense > 0 && !offloads {
		dense.backward -= layers.moe / v * moe.kept // those layers have been through their backward pass
	}
	b.Working += max(moe.backward, dense.backward)
	last := b.Working
	switch {
	case layers.moe > 0 && moe.backward >= dense.backward:
		b.At = AtExperts
	case e.experts > 0:
		b.At = AtDense
	default:
		b.At = AtLayer
	}
	out := 0.0
	if p.PP > 1 && e.stack.keepsOutputs {
		out = input
	}
	inside := layers.dense*dense.kept + layers.moe*moe.kept
	b.Activations = inFlight(p, stage) * (inside/v + out)
	if offloads {
		hosted := inFlight(p, stage) * (layers.dense*dense.hosted + layers.moe*moe.hosted) / v
		hosted = max(hosted-2*max(dense.hosted, moe.hosted), 0)
		b.Activations -= hosted
		b.HostBytes += e.k.Activation * hosted
	}
	if stage == 0 {
		b.Activations += input
	}
	b.Activations *= e.k.Activation
	if stage == headStage(p) {
		if loss := e.loss(p, tokens, input, own.head); loss > b.Working {
			b.Working, b.At = loss, AtLoss
		}
		if e.stack.keepsLogits {
			b.Overhead += a * tokens * e.vocab / float64(p.TP)
		}
	}
	if e.freesGradients(p) {
		if b.Activations+b.Working >= b.Gradients+last {
			b.Gradients = 0
		} else {
			b.Activations, b.Working, b.At = 0, last, AtFirst
		}
	}
	if e.emptyGradients(p) && halfPrecision(p.Precision) {
		b.Buffers += 2 * own.matrices
	}
	switch {
	case p.PP > 1 && e.stack.core:
		b.Buffers += input // the gradient that is received is part of the backward pass
	case p.PP > 1:
		b.Buffers += 2 * input
	}
}

// layerPeak is what one layer keeps of a micro-batch until its backward pass, and what that pass needs in addition. Where
// activations are offloaded, hosted is the part of kept that goes to the host.
type layerPeak struct{ kept, backward, hosted float64 }

// meanPeak returns what a layer keeps in the mean over its possible blocks, and the most that a backward pass of one
// needs.
func (e *Estimator) meanPeak(p *spec.Plan, tokens, a, split float64, blocks []block) (mean layerPeak) {
	for _, b := range blocks {
		one := e.layerPeak(p, tokens, a, split, b)
		mean.kept += b.share * one.kept
		mean.hosted += b.share * one.hosted
		mean.backward = max(mean.backward, one.backward)
	}
	return mean
}

func (e *Estimator) layerPeak(p *spec.Plan, tokens, a, split float64, b block) layerPeak {
	whole, scores := e.layerBytes(p, tokens, a, split, b)
	input := a * tokens * e.hidden / split
	kept, again := whole+scores, 0.0
	switch {
	case p.Recompute == spec.RecomputeFull:
		kept, again = input, whole+scores
	case p.Recompute == spec.RecomputeSelective && e.stack.perOperator:
		kept, again = e.everyOther(p, tokens, a, split, b), whole+scores
	case p.Recompute == spec.RecomputeSelective && e.stack.perBlock:
		kept, again = (input+whole+scores)/2, whole+scores
	case p.Recompute == spec.RecomputeSelective:
		freed, most := e.repeated(p, tokens, a, split, b)
		kept, again = whole-freed, most // of one layer at a time
		if e.stack.modules.Core {
			again = max(most, scores)
		} else {
			kept += scores
		}
	}
	hosted := kept
	if e.stack.onlyExperts {
		hosted = e.hostedByExperts(p, tokens, a, b)
	}
	return layerPeak{kept, again + e.widest(p, tokens, a, b), hosted}
}

// unfused reports whether the stack materializes the attention scores as a tensor.
func (e *Estimator) unfused(p *spec.Plan) bool {
	return e.old || e.stack.unfused || e.stack.unfusedFP32 && !halfPrecision(p.Precision)
}

// loss returns the bytes that the loss and the backward pass of the head need, the larger of
//
//	logits·n·V/t            the loss: bytes per logit that the stack holds at once
//	(a·V/t + a·h)·n + dummy the head: gradients of the logits and of its input, and of its weight
//
// plus the inputs of the last norm and of the head. With sequence parallelism the head's input is gathered, in the
// forward pass or again in the backward pass. Megatron Core adds the gradient of the head's weight, of weight
// parameters, to the accumulator inside the multiplication and gives autograd an empty tensor of the weight's size in
// its place (LinearWithGradAccumulationAndAsyncCommunication in megatron/core/tensor_parallel/layers.py).
func (e *Estimator) loss(p *spec.Plan, tokens, input, weight float64) float64 {
	bytes, a, t := e.stack.logit, elem(p), float64(p.TP)
	if p.TP > 1 {
		bytes = e.stack.logitTP
	}
	whole := a * tokens * e.hidden
	head := input
	if e.stack.keepsGathered {
		head = whole
	}
	logits := e.k.Loss * tokens * e.vocab / t
	backward := a*logits + whole
	if p.SequenceParallel && !e.stack.keepsGathered {
		backward += whole
	}
	if e.emptyGradients(p) {
		backward += a * weight
	}
	return max(bytes*logits, backward) + input + head
}

// widest returns the bytes that the backward pass of a layer holds at once besides what the layer kept: the gradient of
// its output, and the gradients before and after the activation function, those of a mixer's input projection, or those
// of the attention scores if they are materialized. Each copy of a token sent to an expert has its own.
func (e *Estimator) widest(p *spec.Plan, n, a float64, b block) float64 {
	t := float64(p.TP)
	inner := 0.0
	if b.mlp {
		inner = e.ffn
	}
	if b.routed {
		inner = e.received(p)*max(e.expertFFN, e.expertIn) + e.shared*e.expertFFN
	}
	if b.ssm {
		inner = max(inner, e.ssmIn)
	}
	if b.attention && e.unfused(p) {
		inner = max(inner, e.seq*e.heads)
	}
	return a*n*e.hidden + 2*a*n*inner/t
}

// everyOther returns the bytes that one layer keeps if the stack saves the results of every other matrix
// multiplication, of attention and of reduce-scatter:
//
//	n·a·(2h/r + (2q + kv + f)/t)
//
// These are the inputs of mixer and MLP, the query and value projections, attention, and the first multiplication of
// the MLP, or the input projection of a state-space mixer. Source: the save list of torchtitan's apply_ac. See
// layerBytes for the symbols. Latent attention is counted as other attention with as many heads.
func (e *Estimator) everyOther(p *spec.Plan, n, a, r float64, b block) float64 {
	t, width := float64(p.TP), 0.0
	if b.attention {
		width += e.hidden/r + 2*e.heads*e.head/t + e.kv*e.head/min(t, e.kv)
	}
	if b.ssm {
		width += e.hidden/r + e.ssmIn/t
	}
	if b.mlp {
		width += e.hidden/r + e.ffn/t
	}
	if b.routed {
		width += e.hidden/r + (e.received(p)+e.shared)*e.expertFFN/t
	}
	return n * a * width
}

// layerBytes returns the bytes that one layer keeps of one micro-batch without recomputation; the attention
// scores are separate:
//
//	whole  = n·h·((2a + masks)/r + 2a/i) + n·a·(q + 2·kv + q)/t + MLP
//	scores = (2a + 1)·n·s·heads/t, a·n·s·heads/t without dropout, 4·n·heads/t with a fused kernel
//
//	n      tokens of the micro-batch on this device, b·s/CP
//	a      bytes per element, 2 or 4
//	h      hidden width: two norm inputs, and the inputs of QKV and MLP; half of each if a layer has no mixer or no MLP
//	masks  dropout masks of one byte, 2 or 0
//	r, t   t is TP; r is TP with sequence parallelism, else 1
//	i      r, or 1 where the stack keeps gathered inputs
//	q, kv  heads·d and key/value heads·d; the output projection's input is q
//	       with context parallelism that exchanges heads, one more q
//	MLP    n·a·c·f/t: inner activations, 2f, gated 3f; for experts see routedBytes, for frozen weights inputs
//
// A state-space mixer keeps, in place of attention, the output of its input projection and the state's output
// (MambaSplitConv1dScanCombinedFn in mamba_ssm/ops/triton/ssd_combined.py), and the input of the output projection.
//
// Multi-head latent attention keeps, in place of 2q + 2·kv, the compressed queries, keys and values, those of
// queries and of keys and values before and after their norms, and of all heads queries and keys with their
// rotated parts, values and output (DeepSeek-V2, section 2.1;
// megatron/core/transformer/multi_latent_attention.py).
//
// With h = q = kv, f = 4h and a = 2 the sum is sbh·(10 + 24/t) + 5as²b/t. Source: Korthikanti et al. 2022,
// section 4.1 and equations 2 and 4.
func (e *Estimator) layerBytes(p *spec.Plan, n, a, r float64, b block) (whole, scores float64) {
	in := r
	if e.stack.keepsGathered {
		in = 1
	}
	of := e.inputs(p, a)
	part := func(input float64) float64 { return n * e.hidden * ((a+e.masks/2)/r + input/in) }
	if b.attention {
		whole, scores = e.attentionBytes(p, n, a, r, of)
		whole += part(of.qkv)
	}
	if b.ssm {
		whole += part(of.ssm) + n*(a*(e.ssmIn+e.ssm)+of.ssm*e.ssm)/float64(p.TP)
	}
	if b.mlp {
		whole += part(of.up) + n*((e.mlp-1)*a+of.down)*e.ffn/float64(p.TP)
	}
	if b.routed {
		whole += part(of.up) + e.routedBytes(p, n, a, r, of)
	}
	return whole, scores
}

// attentionBytes returns what layerBytes counts of attention, without its norm and the input of QKV.
func (e *Estimator) attentionBytes(p *spec.Plan, n, a, r float64, of inputs) (whole, scores float64) {
	t := float64(p.TP)
	attention := 2*e.heads*e.head/t + 2*e.kv*e.head/min(t, e.kv)
	if l := &e.latent; l.KVRank > 0 {
		attention = (l.Down()+l.QRank+l.KVRank)/r + (2*l.Q+2*l.Out)/t
	}
	if p.CP > 1 && e.stack.exchangesHeads {
		out := e.heads * e.head
		if e.latent.KVRank > 0 {
			out = e.latent.Out
		}
		attention += out / t
	}
	whole = n * a * attention
	if of.qkv < a && e.adapter.Kind == spec.FullTraining { // attention keeps its output in 16 bits, next to the input of the projection
		whole += n * of.qkv * e.heads * e.head / t
	}
	scores = 4 * n * e.heads / t
	if e.unfused(p) {
		scores = a * n * e.seq * e.heads / t
		if e.masks > 0 {
			scores = (2*a + 1) * n * e.seq * e.heads / t
		}
	}
	return whole, scores
}

// inputs are the bytes per element that a layer keeps of the inputs of its multiplications: of QKV, of the MLP's first
// and last, and of both projections of a state-space mixer.
type inputs struct{ qkv, up, down, ssm float64 }

// inputs returns the inputs under p. Transformer Engine keeps the 8-bit copy only
// (transformer_engine/pytorch/module/linear.py, layernorm_linear.py, grouped_linear.py). Frozen weights need none,
// except for adapters, which multiply in 16 bits.
func (e *Estimator) inputs(p *spec.Plan, a float64) (of inputs) {
	one := a
	if e.stack.core && p.Precision.Format() == spec.FP8 {
		one = 1
	}
	if e.adapter.Kind == spec.FullTraining {
		return inputs{one, one, one, one}
	}
	if e.adapter.Has(spec.AdaptQKV) {
		of.qkv = a
	}
	if e.adapter.Has(spec.AdaptMLP) {
		of.up, of.down = a, a
	}
	return of
}

// inFlight returns the number of model chunks (layers/v each) of one micro-batch that stage i of p holds at its
// peak:
//
//	1F1B         min(m, p-i)
//	interleaved  min(m·v, 2(p-i-1) + (v-1)p + 1)
//	GPipe        m
//	ZB-H1        min(m, p)
//	ZB-H2        min(m, 2p-1)
//	ZB-V         min(2m, 2p), of half a stage each
//	DualPipeV    2p+1, of half a stage each
//
// Sources: Narayanan et al. SC 2021, section 2.2; for the first stage this equals l(1 + (p-1)/(pv)) layers as
// in Korthikanti et al. 2022, section 4.2.3; Huang et al., "GPipe", 2019; Qi et al., "Zero Bubble Pipeline
// Parallelism", 2024, sections 2.3 and 6; README.md of deepseek-ai/DualPipe.
//
// In that paper, stage i of ZB-H1 holds p-i micro-batches until their input gradients are computed, plus i
// micro-batches of the tensors that only weight gradients need. The latter take 32 of 34 bytes per token and
// hidden width (without scores), plus the gradients of outputs. Here both count the same. ZB-H2 is counted
// likewise, with 2(p-i)-1 and 2i.
func inFlight(p *spec.Plan, stage int) float64 {
	m, v := p.AccumSteps, p.VirtualStages
	if p.PP == 1 {
		return float64(v)
	}
	switch p.Schedule {
	case spec.ScheduleGPipe:
		return float64(m)
	case spec.ScheduleZBH1:
		return float64(min(m, p.PP))
	case spec.ScheduleZBH2:
		return float64(min(m, 2*p.PP-1))
	case spec.ScheduleZBV:
		return float64(2 * min(m, p.PP))
	case spec.ScheduleDualPipeV:
		return float64(2*p.PP + 1)
	}
	if v == 1 {
		return float64(min(m, p.PP-stage))
	}
	return float64(min(m*v, 2*(p.PP-stage-1)+(v-1)*p.PP+1))
}

// opaqueActivations estimates models known only by their FLOPs: the forward pass keeps one byte per 100 FLOPs
// in 16 bits, two bytes in fp32. The rule lies between ResNet-50 (8.2 GFLOP, about 11 million outputs, each
// kept twice) and VGG-16 (31 GFLOP, about 30 million). Full recomputation keeps a tenth, and needs another
// tenth while it recomputes.
func (e *Estimator) opaqueActivations(b *Breakdown, p *spec.Plan, stage int) {
	kept := elem(p) / 2 * float64(p.MicroBatch) * e.flops / 100 / float64(p.TP*p.CP)
	chunks := inFlight(p, stage) / float64(p.PP*p.Chunks())
	b.Activations = kept * chunks
	if p.Recompute == spec.RecomputeFull {
		b.Working += b.Activations / 10
		b.Activations /= 10
	}
	b.Activations *= e.k.Activation
}
