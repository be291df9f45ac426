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
// one stage.
//
//	Activations = chunks x (layers/v x kept + out)
//	Working     = max(one layer's backward pass, the loss on the last stage)
//
//	chunks  model chunks in flight, see inFlight
//	v       chunks per stage
//	kept    bytes one layer keeps of one micro-batch, see layerBytes
//	out     the chunk's output, where the stack keeps it
//
// The layer's backward pass holds what it recomputed, its unreduced gradients under ZeRO-3 (already in Working
// when this is called) and the gradients of its widest tensors, see widest.
func (e *Estimator) activations(b *Breakdown, p *spec.Plan, stage int, layers float64) {
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
	whole, scores := e.layerBytes(p, tokens, a, split)
	input := a * tokens * e.hidden / split
	kept, again := whole+scores, 0.0
	switch {
	case p.Recompute == spec.RecomputeFull:
		kept, again = input, whole+scores
	case p.Recompute == spec.RecomputeSelective && e.stack.perOperator:
		kept, again = e.everyOther(p, tokens, a, split), whole
	case p.Recompute == spec.RecomputeSelective && e.stack.perBlock:
		kept, again = (input+whole+scores)/2, whole+scores
	case p.Recompute == spec.RecomputeSelective:
		kept, again = whole, scores // one layer's scores at a time
	}
	b.Working += again + e.widest(p, tokens, a)
	out := 0.0
	if p.PP > 1 && e.stack.keepsOutputs {
		out = input
	}
	b.Activations = inFlight(p, stage) * (layers/float64(p.Chunks())*kept + out)
	if stage == 0 {
		b.Activations += input
	}
	b.Activations *= e.k.Activation
	if stage == headStage(p) {
		b.Working = max(b.Working, e.loss(p, tokens, input))
	}
	if p.PP > 1 {
		b.Buffers += 2 * input
	}
}

// unfused reports whether the stack materializes the attention scores as a tensor.
func (e *Estimator) unfused(p *spec.Plan) bool {
	return e.old || e.stack.unfused || e.stack.unfusedFP32 && !halfPrecision(p.Precision)
}

// loss returns the bytes that the loss needs: tokens x vocabulary / TP logits, each with as many bytes as the
// stack holds at once, plus the input of the last norm and that of the head.
func (e *Estimator) loss(p *spec.Plan, tokens, input float64) float64 {
	bytes := e.stack.logit
	if p.TP > 1 {
		bytes = e.stack.logitTP
	}
	head := input
	if e.stack.keepsGathered {
		head = elem(p) * tokens * e.hidden
	}
	return e.k.Loss*bytes*tokens*e.vocab/float64(p.TP) + input + head
}

// widest returns the bytes of the gradients of a layer's widest tensors that the backward pass holds at once,
// before and after one operation. These are the inner activations of the MLP, or the attention scores if they
// are materialized.
func (e *Estimator) widest(p *spec.Plan, n, a float64) float64 {
	t := float64(p.TP)
	inner := (1-e.moe)*e.ffn + e.moe*e.topK*e.expertFFN
	if e.unfused(p) {
		return 2 * a * n * max(inner, e.seq*e.heads) / t
	}
	return 2 * a * n * inner / t
}

// everyOther returns the bytes that one layer keeps if the stack saves the results of every other matrix
// multiplication, of attention and of reduce-scatter:
//
//	n·a·(2h/r + (2q + kv + f)/t)
//
// These are its input and output, the query and value projections, attention, and the first multiplication of
// the MLP. Source: the save list of torchtitan's apply_ac. See layerBytes for the symbols. Latent attention is
// counted as other attention with as many heads.
func (e *Estimator) everyOther(p *spec.Plan, n, a, r float64) float64 {
	t := float64(p.TP)
	inner := (1-e.moe)*e.ffn + e.moe*e.topK*e.expertFFN
	return n * a * (2*e.hidden/r + (2*e.heads*e.head+inner)/t + e.kv*e.head/min(t, e.kv))
}

// layerBytes returns the bytes that one layer keeps of one micro-batch without recomputation; the attention
// scores are separate:
//
//	whole  = n·h·((2a + masks)/r + 2a/i) + n·a·(q + 2·kv + q + c·f)/t + experts
//	scores = (2a + 1)·n·s·heads/t, a·n·s·heads/t without dropout, 4·n·heads/t with a fused kernel
//
//	n      tokens of the micro-batch on this device, b·s/CP
//	a      bytes per element, 2 or 4
//	h      hidden width: two norm inputs, and the inputs of QKV and MLP
//	masks  dropout masks of one byte, 2 or 0
//	r, t   t is TP; r is TP with sequence parallelism, else 1
//	i      r, or 1 where the stack keeps gathered inputs
//	q, kv  heads·d and key/value heads·d; the output projection's input is q
//	c·f    inner MLP activations: 2f, gated 3f
//
// Multi-head latent attention keeps the compressed queries, keys and values, and of all heads queries and keys
// with their rotated parts, values and output, in place of 2q + 2·kv (DeepSeek-V2, section 2.1).
//
// With h = q = kv, f = 4h and a = 2 the sum is sbh·(10 + 24/t) + 5as²b/t. Source: Korthikanti et al. 2022,
// section 4.1 and equations 2 and 4.
func (e *Estimator) layerBytes(p *spec.Plan, n, a, r float64) (whole, scores float64) {
	t := float64(p.TP)
	attention := 2*e.heads*e.head/t + 2*e.kv*e.head/min(t, e.kv)
	if l := &e.latent; l.KVRank > 0 { // compressed; queries and keys with rotated parts, values, output
		attention = l.Down() + (2*l.Q+2*l.Out)/t
	}
	in := r
	if e.stack.keepsGathered {
		in = 1
	}
	whole = n*e.hidden*((2*a+e.masks)/r+2*a/in) + n*a*attention
	whole += (1 - e.moe) * n * a * e.mlp * e.ffn / t
	if e.moe > 0 {
		// Each copy of a token sent to an expert keeps the expert's input, inner activations and output. The
		// copies are assumed to spread evenly over the experts' ranks.
		whole += e.moe * n * e.topK * a * (2*e.hidden + e.mlp*e.expertFFN) / t
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

// inFlight returns the number of model chunks (layers/v each) of one micro-batch that stage i of p holds at its
// peak:
//
//	1F1B         min(m, p-i)
//	interleaved  min(m·v, 2(p-i-1) + (v-1)p + 1)
//	GPipe        m
//	ZB-H1        min(m, p)
//	ZB-H2        min(m, 2p-1)
//	ZB-V         min(2m, 2p), of half a stage each
//
// Sources: Narayanan et al. SC 2021, section 2.2; for the first stage this equals l(1 + (p-1)/(pv)) layers as
// in Korthikanti et al. 2022, section 4.2.3; Huang et al., "GPipe", 2019; Qi et al., "Zero Bubble Pipeline
// Parallelism", 2024, sections 2.3 and 6.
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
