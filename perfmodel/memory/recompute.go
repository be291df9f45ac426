package memory

import "github.com/pacer-ml/pacer/perfmodel/spec"

// repeated returns the bytes of layerBytes that the recomputed modules of a layer do not keep, scores apart, and the most
// that one of them makes again. With the symbols of layerBytes:
//
//	mlp             the MLP's inner activations; its input too where a norm is fused with its first multiplication, since
//	                the module keeps the norm's input, which the layer keeps anyway
//	moe             all that routedBytes counts; the module keeps its input in 16 bits
//	moe_act         the inputs of the experts' last multiplication
//	shared_experts  their inner activations
//	layernorm       the inputs of QKV and of MLP or experts, which are the norms' outputs; none where a norm is fused: before
//	                QKV and dense MLPs with Megatron Core, latent attention apart
//	mla_up_proj     queries and keys, with their rotated parts, and values of all heads
//
// Sources: megatron/core/transformer/transformer_layer.py, moe/moe_layer.py, moe/experts.py and
// multi_latent_attention.py. In 8 bits, layernorm makes Transformer Engine keep the norm's output in place of its 8-bit
// copy (set_save_original_input), which is then freed.
func (e *Estimator) repeated(p *spec.Plan, n, a, r float64, b block) (freed, most float64) {
	m := &e.stack.modules
	t, in := float64(p.TP), r
	if e.stack.keepsGathered {
		in = 1
	}
	of := e.inputs(p, a)
	free := func(bytes float64) { freed, most = freed+bytes, max(most, bytes) }
	inner := (e.mlp-1)*a + of.down
	norm := func(input float64) {
		if m.Norms {
			free(n * e.hidden * input / in)
		}
	}
	if b.attention && (!e.stack.core || e.latent.KVRank > 0) {
		norm(of.qkv)
	}
	if b.ssm && !e.stack.core {
		norm(of.ssm)
	}
	if b.attention && m.UpProj {
		free(n * a * (2*e.latent.Q + e.latent.Out) / t) // 0 without latent attention
	}
	switch fused := e.stack.core; {
	case !b.mlp:
	case m.MLP && fused:
		free(n*inner*e.ffn/t + n*e.hidden*of.up/in)
	case m.MLP:
		free(n*inner*e.ffn/t - n*e.hidden*(a-of.up)/in)
		norm(a)
	case !fused:
		norm(of.up)
	}
	switch {
	case !b.routed:
	case m.MoE:
		free(e.routedBytes(p, n, a, r, of) - n*e.hidden*(a-of.up)/in)
		norm(a)
	default:
		norm(of.up)
		if m.MoEAct {
			free(n * e.received(p) * of.down * e.expertFFN / t)
		}
		if m.Shared {
			free(n * e.shared * inner * e.expertFFN / t)
		}
	}
	return freed, most
}

// hostedByExperts returns what the routed experts of a layer keep: nothing where the whole layer or all experts are recomputed.
func (e *Estimator) hostedByExperts(p *spec.Plan, tokens, a float64, b block) float64 {
	selective, m := p.Recompute == spec.RecomputeSelective, &e.stack.modules
	if !b.routed || p.Recompute == spec.RecomputeFull || selective && (m.MoE || e.stack.perOperator || e.stack.perBlock) {
		return 0
	}
	of := e.inputs(p, a)
	token, inner := e.copyBytes(a, of)
	if selective && m.MoEAct {
		inner -= of.down * e.expertFFN
	}
	return tokens * e.received(p) * (token + inner) / float64(p.TP)
}

// Offloaded returns the bytes that a layer of one micro-batch sends to the host in the forward pass, and gets back in the
// backward pass: the mean over the layers of the model, on the stack of index choice; 0 if activations stay on the device.
// p is normal.
func (e *Estimator) Offloaded(p *spec.Plan, choice int) float64 {
	one := e
	if e.rest != nil {
		with := *e
		with.variant = &e.rest[choice]
		one = &with
	}
	if !one.stack.offloads || !e.shape || e.cpu {
		return 0
	}
	plan := one.normal(*p)
	tokens, split := float64(p.MicroBatch)*e.seq/float64(p.CP), 1.0
	if plan.SequenceParallel {
		split = float64(p.TP)
	}
	a := elem(p)
	bytes := 0.0
	layers := span{dense: e.w.layers.dense + e.ahead.dense, moe: e.w.layers.moe + e.ahead.moe}
	for kind, n := range layers.kinds() {
		if n > 0 {
			bytes += n * one.meanPeak(&plan, tokens, a, split, e.w.blocks(kind)).hosted
		}
	}
	return bytes / layers.all()
}

// routerBytes is what a router keeps per token and expert: 16-bit logits, and in fp32 their softmax, the
// probabilities of the chosen experts and the scores of the balance loss; the map of the routes and its index
// (megatron/core/transformer/moe/router.py, moe_utils.py).
const routerBytes = 2 + 3*4 + 1 + 4

// routedBytes returns the bytes that the MLP of a layer with experts keeps:
//
//	n·a·(k·(h + out + c·f) + shared·c·f)/t + router, in 16 bits; h is that of the experts
//
// Each of the k copies of a token sent to an expert keeps the expert's input and inner activations, and its output
// unless the stack multiplies the inner activations by the router's probabilities, so that their gradient needs no
// output. The input of shared experts is that of the layer. k is that of the busiest device, see received.
func (e *Estimator) routedBytes(p *spec.Plan, n, a, r float64, of inputs) float64 {
	token, inner := e.copyBytes(a, of)
	return n*(e.received(p)*(token+inner)+e.shared*inner)/float64(p.TP) + routerBytes*n*e.experts/r
}

// received returns the copies of tokens that the routed experts of the busiest device receive, over the tokens of a device.
func (e *Estimator) received(p *spec.Plan) float64 { return e.topK * p.Busiest(e.imbalance) }

// copyBytes returns what a routed expert keeps of one token: its input and output, and its inner activations.
func (e *Estimator) copyBytes(a float64, of inputs) (token, inner float64) {
	token = of.down * e.expertIn
	if !e.stack.innerProbabilities {
		token += a * e.expertIn
	}
	return token, ((e.mlp-1)*a + of.down) * e.expertFFN
}
