package analytic

import "github.com/pacer-ml/pacer/perfmodel/spec"

// modules is what selective recomputation repeats of a layer and micro-batch, besides the attention core.
type modules struct {
	device float64 // forward work, seconds
	ep     float64 // all-to-alls, exposed, seconds
	tp     float64 // all-reduces of tensor parallelism, in units of layer.tp
	launch float64 // host time to launch it
}

// recompute counts the modules that the stack recomputes, see memory's repeated: each repeats the multiplications and
// passes of its forward pass. A norm reads and writes its tensor once. An activation function reads up tensors and writes
// one.
func (w *work) recompute(m *machine, p *spec.Plan, l *layer, n, elem float64) {
	of := &m.stack.modules
	if !of.MLP && !of.MoE && !of.MoEAct && !of.Norms && !of.UpProj && !of.Shared {
		return
	}
	t, out := float64(p.TP), &l.again
	rate, quantized := m.matmul(p.Precision)
	pass := elem * n / m.mem // over one tensor of width 1
	norm := 2 * m.passes() * w.hidden * pass
	if p.SequenceParallel {
		norm /= t
	}
	activation := m.passes() * m.k.passesInside * (w.up + 1) / t * pass
	if quantized {
		activation += m.passes() * m.k.passesQuantize / 3 / t * pass
	}
	norms := w.moe
	if !m.stack.core {
		norms += w.attn + w.ssm + w.dense
	} else if w.latent.KVRank > 0 {
		norms += w.attn
	}
	if of.MLP && w.ffn > 0 {
		out.device += w.dense * (w.scale*w.mlp(m, rate, n, w.hidden, w.ffn/t, elem) + activation*w.ffn)
		out.tp += w.dense / w.halves
		out.launch += w.dense * m.k.launch[m.stack.launch] / 2
		if m.stack.core { // it begins with the norm
			out.device += w.dense * norm
		}
	}
	switch {
	case w.moe == 0:
	case of.MoE:
		out.device += w.moe * (w.scale*w.experts(m, p, rate, n, elem) + activation*(w.received(p)*w.expertFFN+w.sharedFFN) + m.k.moePasses/3*w.received(p)*w.expertIn/t*pass)
		out.tp, out.ep = out.tp+w.moe/w.halves, l.ep/2
		out.launch += w.moe * w.halves * m.k.routing[m.stack.routing]
	default:
		if of.MoEAct {
			out.device += w.moe * activation * w.received(p) * w.expertFFN
		}
		if of.Shared && w.sharedFFN > 0 {
			out.device += w.moe * (w.scale*w.mlp(m, rate, n, w.hidden, w.sharedFFN/t, elem) + activation*w.sharedFFN)
		}
	}
	if of.Norms {
		out.device += norms * norm
	}
	if a := &w.latent; of.UpProj && a.KVRank > 0 {
		out.device += w.cross * w.attn * w.scale * (m.gemm(rate, n, a.Q/t, a.QIn, elem) + m.gemm(rate, n, a.KV/t, a.KVRank, elem))
	}
}

// activationSec returns the exposed time to move the activations of one layer and micro-batch to the host behind the
// forward pass of the next layer, and back behind the backward pass.
func (pr *Prepared) activationSec(p *spec.Plan, l *layer) float64 {
	m := &pr.machine
	bytes := pr.Memory.Offloaded(p, pr.choice)
	compute, recompute := pr.kernelSec(l, p)
	forward := l.forward + l.adapters/3 + l.attn + l.passes/3
	return m.exposed(bytes/m.host, forward) + m.exposed(bytes/m.host, compute+recompute-forward)
}
