package analytic

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// smoothMax returns (a⁴ + b⁴)^(1/4).
func smoothMax(a, b float64) float64 {
	a, b = a*a, b*b
	return math.Sqrt(math.Sqrt(a*a + b*b))
}

func log2(x float64) float64 { return math.Log2(x) }

// work is the work of a model's training step, counted per layer.
type work struct {
	shape  bool
	layers float64
	hidden float64
	query  float64 // heads x head width
	kv     float64 // key/value heads x head width
	heads  float64
	odd    bool        // heads have another width than Tensor Cores take
	latent spec.Latent // KVRank 0 = other attention
	core   float64     // width of queries and attention's output together, for the attention core
	ffn    float64     // dense MLP inner width, 0 = none
	up     float64     // matrices into the MLP: 1, gated 2
	vocab  float64
	seq    float64
	doc    float64 // tokens that attend to each other: seq, fewer if documents are packed
	causal float64 // share of the score matrix computed by fused attention
	cross  float64 // attention blocks per layer: 1, encoder-decoder 1.5

	slow, slowBack float64 // slowHeads of the forward and the backward pass of fused attention

	attn     float64 // share of layers with attention
	ssm      float64 // share of layers with a state-space mixer
	ssmIn    float64 // widths of the mixer's input projection, all together
	ssmInner float64 // width of its state, all heads
	ssmPass  float64 // passes over that width, forward and backward
	ahead    float64 // modules for multi-token prediction; layers and the shares of layers include theirs
	halves   float64 // mixers and MLPs of a layer over 2: 1, 1/2 if a layer is only one of them
	tower    float64 // forward FLOPs of a vision tower per sample

	dense     float64 // share of layers with a dense MLP
	moe       float64 // share of layers with routed experts
	topK      float64
	imbalance float64 // see spec.Model.Imbalance, at least 1
	nodes     float64 // that the experts of a token are on at most, see spec.Model.NodeLimit; infinite without a limit
	routed    float64 // experts per layer with routed experts
	expertFFN float64
	expertIn  float64 // width of the experts' input
	latentIn  float64 // the same if tokens are projected to it, else 0
	sharedFFN float64 // inner width of all shared experts together

	adapter spec.Adapter

	scale float64 // published active parameters over those counted, multiplications only
	flops float64 // forward FLOPs per sample of an opaque model
}

// gemm returns the seconds of one multiplication of M x K by K x N at a ceiling rate in FLOP/s: 2MNK/rate x (1
// + waveHalf/waves) x (1 + r·depthHalf/K), where r is the rate over the 16-bit one. This equals
//
//	2·(MN + waveHalf·tile²·units)·(K + r·depthHalf)/rate
//
// times misaligned if N or K is not a multiple of alignment. The time to read and write the operands, in elem
// bytes each, is a lower bound (roofline: Williams et al., 2009).
func (m *machine) gemm(rate, rows, cols, depth, elem float64) float64 {
	return max(m.multiplySec(rate, rows, cols, depth), elem*(rows*cols+(rows+cols)*depth)/m.mem)
}

// multiplySec is gemm without its lower bound.
func (m *machine) multiplySec(rate, rows, cols, depth float64) float64 {
	t := 2 * (rows*cols + m.waveHalf()) * (depth + m.k.depthHalf*rate/m.peak16) / rate
	if int(cols)%alignment != 0 || int(depth)%alignment != 0 {
		t *= m.k.misaligned
	}
	return t
}

// waveHalf returns the elements of a result at which half of the rate is reached.
func (m *machine) waveHalf() float64 { return m.k.waveHalf * (tile * tile) * m.gen.units }

// grouped returns the seconds of the multiplications of several experts at once, with rows in total. With r rows per
// expert less of a tile is used: the rate is multiplied by r/(r + groupedHalf). So the time is proportional to
//
//	(experts·r·cols + waveHalf) · ((1 + groupedHalf/r)·depth/rate + depthHalf/peak16)
//
// Fewer rows can be padded to more, so they take no longer: below the r of its minimum, the time is the minimum.
func (m *machine) grouped(rate, rows, experts, cols, depth, elem float64) float64 {
	rate *= m.k.groupedGEMM
	half, sec := m.k.groupedHalf, depth/rate
	padded := max(rows, math.Sqrt(m.waveHalf()*half*experts/cols*sec/(sec+m.k.depthHalf/m.peak16)))
	r := padded / experts
	return max(m.multiplySec(rate*r/(r+half), padded, cols, depth), elem*(rows*cols+(rows+cols)*depth)/m.mem)
}

// elemBytes returns the size of an element of an activation.
func elemBytes(p *spec.Plan) float64 {
	if p.Precision == spec.FP32 || p.Precision == spec.TF32 {
		return 4
	}
	return 2
}

// layer is the device time of one layer and one micro-batch, seconds.
type layer struct {
	forward  float64 // multiplications of the forward pass; those of the backward pass take backward times that
	backward float64 // 2: gradients of inputs and of weights; 1 if the weights are frozen
	adapters float64 // adapters, forward and backward
	attn     float64 // attention core, forward
	attnBack float64 // attention core, backward
	passes   float64 // memory-bound kernels, forward and backward
	attnMem  float64 // part of passes spent on the score matrix
	tp       float64 // one all-reduce of the activations
	ep       float64 // all-to-alls of forward and backward, exposed
	cp       float64 // ring exchange of keys and values, exposed
	launch   float64 // host time to launch the forward pass
	again    modules // what selective recomputation repeats besides the attention core
}

// layerOf returns the layer that count counts.
func (w *work) layerOf(m *machine, p *spec.Plan) (l layer) {
	w.count(&l, m, p)
	return l
}

// count sets l to one layer under plan p:
//
//	QKV   tokens x (q+2kv)/t x h      out  tokens x h x q/t
//	up    tokens x c·f/t x h          down tokens x h x f/t
//
// Source: Narayanan et al. SC 2021, appendix; tensor parallel split of Shoeybi
// et al., "Megatron-LM", 2019, section 3; key/value heads of Ainslie et al.,
// "GQA", 2023.
func (w *work) count(l *layer, m *machine, p *spec.Plan) {
	*l = layer{}
	t, cp := float64(p.TP), float64(p.CP)
	n := float64(p.MicroBatch) * w.seq / cp
	elem := elemBytes(p)
	rate, quantized := m.matmul(p.Precision)
	inner := 0.0 // width of the MLP's activation
	if w.attn > 0 {
		l.forward = w.cross * w.attn * w.projections(m, rate, n, t, elem)
	}
	if w.ssm > 0 {
		l.forward += w.ssm * (m.gemm(rate, n, w.ssmIn/t, w.hidden, elem) + m.gemm(rate, n, w.hidden, w.ssmInner/t, elem))
		l.passes = w.ssm * m.k.ssmShare * w.ssmPass * elem * n * w.ssmInner / t / m.mem
	}
	if w.dense > 0 && w.ffn > 0 {
		l.forward += w.dense * w.mlp(m, rate, n, w.hidden, w.ffn/t, elem)
		inner += w.dense * w.ffn
	}
	if w.moe > 0 {
		l.forward += w.moe * w.experts(m, p, rate, n, elem)
		inner += w.moe * (w.received(p)*w.expertFFN + w.sharedFFN)
	}
	l.forward *= w.scale
	l.forward += float64(p.MicroBatch) * w.tower / (w.layers * t * cp * rate)
	l.backward = 2
	if w.adapter.Kind != spec.FullTraining {
		w.adapt(m, p, l, n, elem)
	}

	w.attention(m, p, l, n, elem)
	split := 1.0
	if p.SequenceParallel {
		split = t
	}
	// The activation reads up tensors and writes one; its backward pass reads those and a gradient and writes up more.
	inside := m.k.passesInside * (3*w.up + 2)
	if quantized {
		inside += m.k.passesQuantize
	}
	l.passes += m.passes() * elem * n * (w.halves*w.cross*m.k.passesOutside*w.hidden/split + inside*inner/t) / m.mem

	if p.TP > 1 {
		l.tp = 2 * w.halves * m.passSec(m.ringOf(p.TP, 1), elem*n*w.hidden) * m.tpExposed(w.adapter.Kind != spec.FullTraining)
	}
	w.dispatch(m, p, l, n, elem)
	w.exchange(m, p, l, n, elem)
	l.passes += w.moe * m.k.moePasses * elem * n * w.received(p) * w.expertIn / t / m.mem
	w.recompute(m, p, l, n, elem)
	l.launch = ((1-w.moe)*m.k.launch[m.stack.launch] + w.moe*m.k.routing[m.stack.routing]) * w.halves
}

// adapt adds the adapters of a layer with frozen weights: two thin multiplications and an addition to the output
// forward, twice as many multiplications and an addition to the gradient of the input backward. Quantised weights are dequantised before each use: 4 bits read, 16
// written. DoRA reads the weights and writes their norms once per forward pass.
func (w *work) adapt(m *machine, p *spec.Plan, l *layer, n, elem float64) {
	l.backward = 1
	t, r := float64(p.TP), float64(w.adapter.Rank)
	thin := func(share, n, in, out float64) {
		one := m.gemm(m.peak16, n, r, in, elem) + m.gemm(m.peak16, n, out, r, elem)
		l.adapters += share * (3*one + 3*elem*n*(in+out)/m.mem)
		if m.stack.dropout { // forward a read, a write and a mask of one byte, backward as much
			l.adapters += share * 2 * (2*elem + 1) * n * in / m.mem
		}
	}
	mlp := func(share, n, in, inner float64) {
		if share > 0 && inner > 0 {
			thin(share, n, in, w.up*inner)
			thin(share, n, inner, in)
		}
	}
	attn := w.cross * w.attn
	if attn > 0 && w.adapter.Has(spec.AdaptQKV) {
		if a := &w.latent; a.KVRank == 0 {
			thin(attn, n, w.hidden, (w.query+2*w.kv)/t)
		} else {
			if a.QRank > 0 {
				thin(attn, n, w.hidden, a.QRank)
			}
			thin(attn, n, a.QIn, a.Q/t)
			thin(attn, n, w.hidden, a.KVRank+a.Rotated)
			thin(attn, n, a.KVRank, a.KV/t)
		}
	}
	if attn > 0 && w.adapter.Has(spec.AdaptO) {
		thin(attn, n, w.query/t, w.hidden)
	}
	if w.adapter.Has(spec.AdaptMLP) {
		mlp(w.dense, n, w.hidden, w.ffn/t)
		mlp(w.moe, n*w.received(p)/t, w.expertIn, w.expertFFN)
		mlp(w.moe, n, w.hidden, w.sharedFFN/t)
	}
	switch w.adapter.Kind {
	case spec.QLoRA:
		l.adapters += 2 * 2.5 * w.weights(p) / m.mem
	case spec.DoRA:
		l.adapters += 2 * w.weights(p) / m.mem
	}
}

// weights returns the weights of the multiplications of a layer on one device.
func (w *work) weights(p *spec.Plan) float64 {
	attention, down := 2*w.hidden*(w.query+w.kv), 0.0
	if a := &w.latent; a.KVRank > 0 {
		attention, down = a.QIn*a.Q+a.KVRank*a.KV+w.hidden*a.Out, w.hidden*a.Down()
	}
	mlp := w.hidden * ((w.up+1)*(w.dense*w.ffn+w.moe*w.sharedFFN) + 2*w.moe*w.latentIn)
	split := w.cross*w.attn*attention + w.ssm*w.hidden*(w.ssmIn+w.ssmInner) + mlp
	experts := w.moe * w.routed * (w.up + 1) * w.expertIn * w.expertFFN
	return split/float64(p.TP) + w.cross*w.attn*down + experts/float64(max(p.EP, p.TP))
}

// projections returns the multiplications to queries, keys and values, and of the output. All ranks multiply to
// the compressed widths of multi-head latent attention.
func (w *work) projections(m *machine, rate, n, t, elem float64) float64 {
	out := m.gemm(rate, n, w.hidden, w.query/t, elem)
	l := &w.latent
	if l.KVRank == 0 {
		return m.gemm(rate, n, w.query/t+2*w.heldKV(t), w.hidden, elem) + out
	}
	return m.gemm(rate, n, l.Down(), w.hidden, elem) + m.gemm(rate, n, l.Q/t, l.QIn, elem) + m.gemm(rate, n, l.KV/t, l.KVRank, elem) + out
}

// heldKV returns the width of the keys that one of t tensor parallel ranks has: of one head at least.
func (w *work) heldKV(t float64) float64 { return max(w.kv/t, w.query/w.heads) }

// mlp returns the multiplications of an MLP with an input of that width.
func (w *work) mlp(m *machine, rate, n, width, inner, elem float64) float64 {
	return m.gemm(rate, n, w.up*inner, width, elem) + m.gemm(rate, n, width, inner, elem)
}

// received returns the copies of tokens that the routed experts of the busiest device receive, over the tokens of a device.
// The other devices of its group wait for it in the next all-to-all.
func (w *work) received(p *spec.Plan) float64 { return w.topK * p.Busiest(w.imbalance) }

// experts returns the multiplications of one layer with routed experts. Each device processes its share of the
// copies of tokens, spread over its experts, as one grouped multiplication.
func (w *work) experts(m *machine, p *spec.Plan, rate, n, elem float64) float64 {
	copies := n * w.received(p) / float64(p.TP)
	held := max(w.routed/float64(max(p.EP, 1)), 1)
	if p.Precision == spec.FP4 { // Transformer Engine has no grouped multiplications in 4 bits
		rate, _ = m.matmul(spec.FP8)
	}
	t := m.grouped(rate, copies, held, w.up*w.expertFFN, w.expertIn, elem) + m.grouped(rate, copies, held, w.expertIn, w.expertFFN, elem)
	if w.latentIn > 0 {
		t += m.gemm(rate, n, w.latentIn, w.hidden, elem) + m.gemm(rate, n, w.hidden, w.latentIn, elem)
	}
	if w.sharedFFN > 0 {
		t += w.mlp(m, rate, n, w.hidden, w.sharedFFN/float64(p.TP), elem)
	}
	return t
}

// attention adds the attention core: 4·n·s·q/t FLOPs forward, 2·n·s·(q+o)/t if queries and outputs differ in width. A
// fused kernel skips the masked half of a causal score matrix and keeps the scores on chip (Dao et al.,
// "FlashAttention", 2022), and of packed documents all but the blocks on the diagonal, at the rate of sequences of their
// length. Without one, the whole matrix is computed, written and read, and heads of other widths than Tensor Cores take are
// multiplied without these.
func (w *work) attention(m *machine, p *spec.Plan, l *layer, n, elem float64) {
	if w.attn == 0 {
		return
	}
	flops := w.cross * w.attn * 2 * n * w.seq * w.core / float64(p.TP)
	if m.flash > 0 && elem == 2 {
		t := flops * w.causal / m.flash * (1 + m.k.flashHalf/w.doc)
		l.attn, l.attnBack = t*w.slow, flashBackward*t*w.slowBack
		return
	}
	l.attn = flops / (m.wide(p.Precision) * m.k.unfusedShare)
	if elem == 2 && m.gen.tensor && w.odd {
		l.attn *= withoutTensorCores
	}
	l.attnBack = 2 * l.attn
	l.attnMem = w.attn * m.k.unfusedPasses * elem * n * w.seq * w.heads / float64(p.TP) / m.mem
	l.passes += l.attnMem
}

// slowHeads returns the time of fused attention with heads of a width over that with heads of 128. Each score takes one
// exponential, whatever the width, beside the multiplications; exps is the ratio of their times for heads of 128.
func slowHeads(exps, width float64) float64 {
	return smoothMax(1, exps*128/width) / smoothMax(1, exps)
}

// dispatch adds the all-to-alls of expert parallelism: two forward and two backward, each with the copies of
// the device's tokens (Lepikhin et al., "GShard", 2020). The busiest device receives more, and sends as many back. DualPipeV
// hides them like part ep=backward of a stack, whatever the stack.
func (w *work) dispatch(m *machine, p *spec.Plan, l *layer, n, elem float64) {
	if w.moe == 0 || p.EP == 1 {
		return
	}
	r := m.ringOf(p.EP, 1)
	token, exposed := elem*n/float64(p.TP)*w.expertIn*p.Busiest(w.imbalance), m.stack.exposedEP
	if p.Schedule == spec.ScheduleDualPipeV {
		exposed = min(exposed, behindBackward)
	}
	l.ep = w.moe * 4 * m.k.allToAll * exposed * m.allToAllSec(r, token*m.copies(min(r.n, w.nodes*r.inner), w.topK), token*m.remoteCopies(r, w.nodes, w.topK))
}

// exchange adds the traffic of context parallelism: of keys and values with CP-1 neighbours, once forward and twice backward,
// overlapped by attention (Liu et al., "Ring Attention", 2023); or two all-to-alls in each pass, which attention waits for, of
// queries, keys and values before it and of its output after it (Jacobs et al., "DeepSpeed Ulysses", 2023, section 3.1).
func (w *work) exchange(m *machine, p *spec.Plan, l *layer, n, elem float64) {
	if p.CP == 1 || w.attn == 0 {
		return
	}
	r, t := m.ringOf(p.CP, p.TP), float64(p.TP)
	if m.stack.exchangesHeads {
		width := 2*w.query/t + 2*w.heldKV(t)
		if a := &w.latent; a.KVRank > 0 {
			width = 2 * (a.Q + a.Out) / t
		}
		bytes := elem * n * w.attn * width
		l.cp = 2 * m.allToAllSec(r, bytes, bytes*(1-r.inner/r.n))
		return
	}
	bytes := 2 * elem * n * w.attn * w.heldKV(t) * r.n // every rank receives the keys and values of all ranks
	l.cp = m.exposed(3*m.passSec(r, bytes), l.attn+l.attnBack)
}

// headSec returns the time of the vocabulary head and loss of one micro-batch, forward and backward, never
// quantized: 6·n·h·V/t FLOPs and the passes over the logits. Modules for multi-token prediction use the head again,
// after a projection of 12·n·h² FLOPs.
func (w *work) headSec(m *machine, p *spec.Plan) float64 {
	if w.vocab == 0 {
		return 0
	}
	n, t := float64(p.MicroBatch)*w.seq/float64(p.CP), float64(p.TP)
	cols := math.Ceil(w.vocab/t/alignment) * alignment // padded, as stacks do it
	elem := elemBytes(p)
	times := 3.0
	if w.adapter.Kind != spec.FullTraining {
		times = 2
	}
	rate := m.wide(p.Precision)
	head := times*m.gemm(rate, n, cols, w.hidden, elem) + m.k.passesLogits*elem*n*cols/m.mem
	return head + w.ahead*(head+times*m.gemm(rate, n, w.hidden/t, 2*w.hidden, elem))
}
