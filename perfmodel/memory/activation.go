package memory

import "github.com/pacer-ml/pacer/perfmodel/spec"

// elem returns the bytes of one activation.
func elem(p *spec.Plan) float64 {
	if halfPrecision(p.Precision) {
		return 2
	}
	return 4
}

// activations fills Activations, Working and the pipeline receive buffers of
// one stage.
//
//	Activations = chunks x layers/v x kept
//	Working     = max(one whole layer when recomputing, logits on the last stage)
//
//	chunks  model chunks in flight, see inFlight
//	v       virtual stages
//	kept    bytes one layer keeps of one micro-batch, see layerBytes
func (e *Estimator) activations(b *Breakdown, p *spec.Plan, stage int, layers float64) {
	if !e.shape {
		e.opaqueActivations(b, p, stage)
		return
	}
	tokens := float64(p.MicroBatch) * e.seq / float64(p.CP)
	a := elem(p)
	split := 1.0 // of tensors tensor parallelism replicates
	if p.SequenceParallel {
		split = float64(p.TP)
	}
	whole, scores := e.layerBytes(p, tokens, a, split)
	kept := whole + scores
	switch p.Recompute {
	case spec.RecomputeSelective:
		kept = whole
		if e.stack.perOperator {
			kept *= perOperatorKept
		}
		b.Working = scores // one layer's scores at a time
	case spec.RecomputeFull:
		kept = a * tokens * e.hidden / split
		b.Working = whole + scores
	}
	b.Activations = inFlight(p, stage) * layers / float64(p.VirtualStages) * kept
	if stage == 0 {
		b.Activations += a * tokens * e.hidden / split
	}
	if stage == p.PP-1 {
		logits := tokens * e.vocab / float64(p.TP) * e.stack.logit
		b.Working = max(b.Working, logits)
	}
	if p.PP > 1 {
		b.Buffers += 2 * a * tokens * e.hidden / split
	}
}

// perOperatorKept is the share of a layer's activations kept when every other
// matrix multiplication is recomputed. Read off the 8B rows of torchtitan
// benchmarks/llama3_h100_202412_torchtitan.md (commit b5bcd76c), where it is
// 0.35 to 0.5 depending on the compiler.
const perOperatorKept = 0.45

// layerBytes returns what one layer keeps of one micro-batch without
// recomputation, and apart from it the attention scores, in bytes:
//
//	whole  = n·(a·4h + masks·h)/r + n·a·(q + 2·kv + q + c·f)/t + experts
//	scores = 2.5·a·n·s·heads/t, 4·n·heads/t with a fused kernel
//
//	n      tokens of the micro-batch on this device, b·s/CP
//	a      bytes per element, 2 or 4
//	h      hidden width: two norm inputs, QKV input, MLP input
//	masks  dropout masks of one byte, 2 or 0
//	r, t   t is TP; r is TP with sequence parallelism, else 1
//	q, kv  heads·d and key/value heads·d; the output projection's input is q
//	c·f    inner MLP activations: 2f, gated 3f
//
// With h = q = kv, f = 4h, a = 2 it is sbh·(10 + 24/t) + 5as²b/t. Source:
// Korthikanti et al. 2022, section 4.1 and equations 2 and 4.
func (e *Estimator) layerBytes(p *spec.Plan, n, a, r float64) (whole, scores float64) {
	t := float64(p.TP)
	q := e.heads * e.head / t
	kv := e.kv * e.head / min(t, e.kv)
	whole = n*e.hidden*(4*a+e.masks)/r + n*a*(2*q+2*kv)
	whole += (1 - e.moe) * n * a * e.mlp * e.ffn / t
	if e.moe > 0 {
		// Every routed copy keeps the expert's input, inner activations and
		// output; copies of a token spread evenly over the experts' ranks.
		whole += e.moe * n * e.topK * a * (2*e.hidden + e.mlp*e.expertFFN) / t
	}
	scores = 4 * n * e.heads / t
	if e.stack.unfused {
		scores = 2.5 * a * n * e.seq * e.heads / t
	}
	return whole, scores
}

// inFlight returns how many model chunks (layers/v each) of one micro-batch
// stage i of p holds at its peak: min(m, p-i) with 1F1B, and
// min(m·v, 2(p-i-1) + (v-1)p + 1) interleaved. Source: Narayanan et al. SC
// 2021, section 2.2; on the first stage l(1 + (p-1)/(pv)) layers' worth as in
// Korthikanti et al. 2022, section 4.2.3.
func inFlight(p *spec.Plan, stage int) float64 {
	m, v := p.AccumSteps, p.VirtualStages
	if p.PP == 1 {
		return float64(v)
	}
	if v == 1 {
		return float64(min(m, p.PP-stage))
	}
	return float64(min(m*v, 2*(p.PP-stage-1)+(v-1)*p.PP+1))
}

// opaqueActivations applies one stated rule to models known only by their
// FLOPs: the forward pass keeps one byte per 100 FLOPs in 16 bits, two in
// fp32. ResNet-50 (8.2 GFLOP, about 11 million outputs kept twice) and
// VGG-16 (31 GFLOP, about 30 million) lie on either side. Full recomputation
// keeps a tenth and works on a tenth.
func (e *Estimator) opaqueActivations(b *Breakdown, p *spec.Plan, stage int) {
	kept := elem(p) / 2 * float64(p.MicroBatch) * e.flops / 100 / float64(p.TP*p.CP)
	chunks := inFlight(p, stage) / float64(p.PP*p.VirtualStages)
	b.Activations = kept * chunks
	if p.Recompute == spec.RecomputeFull {
		b.Working = b.Activations / 10
		b.Activations /= 10
	}
}
