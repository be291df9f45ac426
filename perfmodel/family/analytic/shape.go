package analytic

import (
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// newWork counts the layers of the model of c and their widths. The error wraps perfmodel.ErrNotCovered.
func newWork(c *spec.Config, w *work) error {
	model := shapeOf(&c.Model)
	m := &model
	if !m.HasShape() || m.SSMLayers == 0 && (m.Heads <= 0 || m.Head() <= 0) {
		return w.setSeq(m, c.Seq())
	}
	d := float64(m.Head())
	*w = work{
		shape: true, layers: float64(m.Layers), hidden: float64(m.Hidden), heads: float64(m.Heads),
		query: float64(m.Heads) * d, kv: float64(m.KV()) * d, ffn: float64(m.FFN), up: 1,
		vocab: float64(m.Vocab), cross: 1, scale: 1,
		attn: 1, halves: 1, dense: 1,
		odd: c.Model.Heads > 0 && m.Head()%tensorWidth != 0, // the width of guessed heads says nothing
	}
	w.adapter = m.Adapter
	w.core = 2 * w.query
	if l, ok := m.Latent(); ok {
		w.latent, w.core, w.kv = l, l.Q+l.Out, (l.KV+l.Rotated)/2
	}
	if m.GatedMLP {
		w.up = 2
	}
	if m.Kind == spec.EncoderDecoder {
		w.cross = 1.5
	}
	if err := w.setSeq(m, c.Seq()); err != nil {
		return err
	}
	w.tower = m.Tower.TrainFLOPs() / 3
	w.hybrid(m)
	if m.Experts > 0 {
		w.moe = float64(m.MoELayers()) / w.layers
		w.dense -= w.moe
		w.routed, w.expertIn, w.latentIn = float64(m.Experts), float64(m.ExpertIn()), float64(m.ExpertHidden)
		w.topK, w.imbalance, w.expertFFN = float64(m.ExpertsPerToken), max(m.Imbalance, 1), float64(m.ExpertFFN)
		w.sharedFFN = float64(m.SharedExperts * m.ExpertFFN)
		if w.nodes = math.Inf(1); m.NodeLimit > 0 {
			w.nodes = float64(m.NodeLimit)
		}
	}
	if m.ActiveParamCount > 0 || m.ParamCount > 0 && m.Experts == 0 {
		w.scale = publishedScale(m)
	}
	if dense, moe := m.AheadLayers(); dense+moe > 0 {
		w.predictAhead(float64(m.MTPLayers), float64(dense), float64(moe))
	}
	return nil
}

// shapeOf returns m with its shape completed. A transformer without a kind is a decoder.
func shapeOf(m *spec.Model) spec.Model {
	out, _ := memory.GuessShape(*m)
	if out.Kind == "" {
		out.Kind = spec.Decoder
	}
	return out
}

// setSeq sets the tokens of a sample of m, which shapeOf has returned; 0 = unknown. The error wraps
// perfmodel.ErrNotCovered.
func (w *work) setSeq(m *spec.Model, seq int) error {
	w.seq = float64(max(seq, 1))
	if w.shape {
		if seq == 0 {
			return fmt.Errorf("analytic: model %q has no tokens per sample: %w", m.Name, perfmodel.ErrNotCovered)
		}
		w.doc, w.causal = float64(m.Document(int(w.seq))), m.ScoreShare(int(w.seq))
		return nil
	}
	w.flops = m.FLOPsPerSample
	if w.flops <= 0 && m.ActiveParams() > 0 {
		if seq == 0 {
			return fmt.Errorf("analytic: model %q has only a parameter count: want the tokens per sample too: %w", m.Name, perfmodel.ErrNotCovered)
		}
		w.flops = 2 * m.ActiveParams() * w.seq
	}
	if w.flops <= 0 {
		return fmt.Errorf("analytic: model %q has neither layers and hidden size nor FLOPs nor a parameter count: %w", m.Name, perfmodel.ErrNotCovered)
	}
	return nil
}

// predictAhead counts k modules for multi-token prediction with their layers: each has an attention, an MLP or experts, a
// projection of twice the width, and the head once more.
func (w *work) predictAhead(k, dense, moe float64) {
	before := w.layers
	w.ahead, w.layers = k, before+dense+moe
	of := func(share, more float64) float64 { return (share*before + more) / w.layers }
	w.attn, w.ssm, w.halves = of(w.attn, k), of(w.ssm, 0), of(w.halves, k)
	if moe > 0 {
		w.dense, w.moe = of(w.dense, 0), of(w.moe, k)
	} else {
		w.dense = of(w.dense, k)
	}
}

// ssmPasses returns the passes over the inner width of a state-space mixer, forward and backward: 20 of convolution,
// gate and gated norm, and 0.9 per element of the state's width. On an A100, the core of Mamba 2 with a state of 64
// takes as long as FlashAttention-2 at 2048 tokens (Dao and Gu 2024, figure 10); in that time its memory streams 57
// such passes.
func ssmPasses(m *spec.Model) float64 { return 20 + 0.9*float64(m.SSMState) }

// hybrid counts the layers of a model with other layers than attention followed by an MLP.
func (w *work) hybrid(m *spec.Model) {
	w.dense = float64(m.LayersWithMLP()) / w.layers
	if m.SSMLayers == 0 && m.MLPLayers == 0 {
		return
	}
	w.attn, w.ssm = float64(m.AttentionLayers())/w.layers, float64(m.SSMLayers)/w.layers
	w.ssmInner = float64(m.SSMHeads * m.SSMHeadDim)
	w.ssmIn = m.SSMIn()
	w.ssmPass = ssmPasses(m)
	if w.ffn == 0 && m.Experts == 0 {
		w.dense = 0
	}
	w.halves = (w.attn + w.ssm + float64(m.LayersWithMLP())/w.layers) / 2
}

// publishedScale returns the ratio of published to counted active parameters, without embeddings, limited to
// [1/2, 2]. It covers attention or layers that the model's figures do not describe.
func publishedScale(m *spec.Model) float64 {
	shape := *m
	shape.ParamCount, shape.ActiveParamCount = 0, 0
	e := m.EmbeddingParams() + m.Tower.Params()
	have, want := shape.ActiveParams()-e, m.ActiveParams()-e
	if have <= 0 || want <= 0 {
		return 1
	}
	return min(max(want/have, 0.5), 2)
}
