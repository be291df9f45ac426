package spec

import (
	"errors"
	"fmt"
	"math"
)

// Kind is the architecture of a Model; it determines how its work is counted.
type Kind string

const (
	Decoder        Kind = "decoder"         // causal transformer: GPT, Llama, mixture of experts
	Encoder        Kind = "encoder"         // bidirectional transformer: BERT, RoBERTa
	EncoderDecoder Kind = "encoder-decoder" // T5; Layers counts both stacks
	Vision         Kind = "vision"          // vision transformer; SeqLen counts patches
	Opaque         Kind = "opaque"          // known only by ParamCount and FLOPsPerSample
)

// Model is the neural network being trained. Its Name is the key of measurements and fitted performance models;
// predictors that count work use the other fields. A number of 0 means not recorded.
type Model struct {
	Name    string `json:"name"`
	Kind    Kind   `json:"kind,omitempty"`
	Layers  int    `json:"layers,omitempty"`
	Hidden  int    `json:"hidden,omitempty"`
	FFN     int    `json:"ffn,omitempty"`      // inner width of the MLP
	Heads   int    `json:"heads,omitempty"`    // query heads
	KVHeads int    `json:"kv_heads,omitempty"` // key/value heads, fewer than Heads with GQA; 0 = Heads
	HeadDim int    `json:"head_dim,omitempty"` // 0 = Hidden/Heads
	Vocab   int    `json:"vocab,omitempty"`
	SeqLen  int    `json:"seq_len,omitempty"` // tokens per sample, unless a Config has its own

	// QRank and KVRank are the widths to which multi-head latent attention compresses queries, and keys and
	// values (DeepSeek-V2, arXiv 2405.04434, section 2.1). KVRank 0 = other attention; QRank 0 = queries are
	// not compressed.
	QRank  int `json:"q_rank,omitempty"`
	KVRank int `json:"kv_rank,omitempty"`

	GatedMLP       bool `json:"gated_mlp,omitempty"`       // three MLP matrices instead of two
	TiedEmbeddings bool `json:"tied_embeddings,omitempty"` // input and output embedding shared

	Experts         int `json:"experts,omitempty"`           // routed experts per MoE layer, 0 = dense
	ExpertsPerToken int `json:"experts_per_token,omitempty"` // top-k
	ExpertFFN       int `json:"expert_ffn,omitempty"`        // inner width of one expert
	SharedExperts   int `json:"shared_experts,omitempty"`    // experts that process every token
	DenseLayers     int `json:"dense_layers,omitempty"`      // leading layers with a dense MLP in an MoE model

	// Adapter says which weights are trained; the zero value trains all.
	Adapter Adapter `json:"adapter,omitzero"`

	// ParamCount and ActiveParamCount are the published counts; they replace those computed from the other
	// fields. ActiveParamCount is the number per token of a mixture of experts.
	ParamCount       float64 `json:"param_count,omitempty"`
	ActiveParamCount float64 `json:"active_param_count,omitempty"`
	// FLOPsPerSample is the work of one forward pass of one sample, for Opaque models.
	FLOPsPerSample float64 `json:"flops_per_sample,omitempty"`
}

// HasShape reports whether layers and widths are known, so that per-layer
// formulas apply.
func (m Model) HasShape() bool { return m.Layers > 0 && m.Hidden > 0 && m.Kind != Opaque }

// KV returns the number of key/value heads.
func (m Model) KV() int {
	if m.KVHeads > 0 {
		return m.KVHeads
	}
	return m.Heads
}

// Head returns the width of one attention head.
func (m Model) Head() int {
	if m.HeadDim > 0 {
		return m.HeadDim
	}
	if m.Heads > 0 {
		return m.Hidden / m.Heads
	}
	return 0
}

// mlpMatrices is 3 for gated MLPs (up, gate, down), else 2.
func (m Model) mlpMatrices() float64 {
	if m.GatedMLP {
		return 3
	}
	return 2
}

// AttentionParams returns the parameters of the attention projections of one layer: 2·h·a·d + 2·h·k·d (Ainslie et
// al., GQA, 2023), or those of Latent.
func (m Model) AttentionParams() float64 {
	h, d := float64(m.Hidden), float64(m.Head())
	if l, ok := m.Latent(); ok {
		return h*l.Down() + l.QIn*l.Q + l.KVRank*l.KV + h*l.Out
	}
	return 2*h*float64(m.Heads)*d + 2*h*float64(m.KV())*d
}

// rotated is the width of a head that multi-head latent attention keeps apart for the position, in addition to
// HeadDim. It has this value in all published networks (DeepSeek-V2, section 3.1.2; DeepSeek-V3, section 4.2).
const rotated = 64

// Latent has the widths of multi-head latent attention. The input, of width h, is multiplied to QRank and to
// KVRank + Rotated, from there to queries and to keys and values of all heads, and attention's output back to h.
type Latent struct {
	QRank   float64 // 0 = queries are not compressed
	QIn     float64 // input of the queries: QRank or h
	Q       float64 // queries of all heads, with their rotated parts
	KVRank  float64
	Rotated float64 // of the keys, one for all heads
	KV      float64 // keys, without rotated parts, and values of all heads
	Out     float64 // output of attention, all heads
}

// Latent returns the widths of multi-head latent attention, false for other attention.
func (m Model) Latent() (Latent, bool) {
	if m.KVRank == 0 {
		return Latent{}, false
	}
	a, d := float64(m.Heads), float64(m.Head())
	l := Latent{QRank: float64(m.QRank), QIn: float64(m.QRank), Q: a * (d + rotated), KVRank: float64(m.KVRank), Rotated: rotated, KV: 2 * a * d, Out: a * d}
	if m.QRank == 0 {
		l.QIn = float64(m.Hidden)
	}
	return l, true
}

// Down returns the width of the compressed queries, keys and values, which every tensor parallel rank computes.
func (l Latent) Down() float64 { return l.QRank + l.KVRank + l.Rotated }

// DenseMLPParams returns the parameters of one dense MLP.
func (m Model) DenseMLPParams() float64 {
	return m.mlpMatrices() * float64(m.Hidden) * float64(m.FFN)
}

// ExpertParams returns the parameters of one expert.
func (m Model) ExpertParams() float64 {
	return m.mlpMatrices() * float64(m.Hidden) * float64(m.ExpertFFN)
}

// MoELayers returns the number of layers with routed experts.
func (m Model) MoELayers() int {
	if m.Experts == 0 {
		return 0
	}
	return max(m.Layers-m.DenseLayers, 0)
}

// EmbeddingParams returns the parameters of the input and output embeddings.
func (m Model) EmbeddingParams() float64 {
	e := float64(m.Vocab) * float64(m.Hidden)
	if m.TiedEmbeddings {
		return e
	}
	return 2 * e
}

// Params returns the total parameter count: ParamCount if it is set, else the size of all weight matrices. 0 if
// neither is known.
func (m Model) Params() float64 {
	if m.ParamCount > 0 {
		return m.ParamCount
	}
	return m.shapeParams(m.Experts + m.SharedExperts)
}

// ActiveParams returns the number of parameters that process one token; for dense models it equals Params.
func (m Model) ActiveParams() float64 {
	if m.ActiveParamCount > 0 {
		return m.ActiveParamCount
	}
	if m.Experts == 0 {
		return m.Params()
	}
	return m.shapeParams(m.ExpertsPerToken + m.SharedExperts)
}

func (m Model) shapeParams(expertsPerLayer int) float64 {
	if !m.HasShape() {
		return 0
	}
	l, moe := float64(m.Layers), float64(m.MoELayers())
	p := l*m.AttentionParams() + (l-moe)*m.DenseMLPParams() + m.EmbeddingParams()
	p += moe * (float64(expertsPerLayer)*m.ExpertParams() + float64(m.Hidden*m.Experts))
	if m.Kind == EncoderDecoder {
		p += l / 2 * m.AttentionParams() // cross attention of the decoder half
	}
	return p
}

// TrainFLOPs returns the FLOPs of the forward and backward pass of one sample of seq tokens, without
// recomputation: 6 x active parameters x tokens, plus attention scores, which count half if causal (Chowdhery
// et al., PaLM, 2022, appendix B). An encoder-decoder has seq tokens in both stacks; its decoder has causal
// self-attention and cross attention. An Opaque model has 3 x FLOPsPerSample, or 6 x parameters x tokens if
// that is unknown. With an Adapter, frozen weights have no gradients: 4 x active parameters x tokens. seq 0 means the model's SeqLen.
func (m Model) TrainFLOPs(seq int) float64 {
	if seq == 0 {
		seq = m.SeqLen
	}
	if !m.HasShape() {
		if m.FLOPsPerSample > 0 {
			return 3 * m.FLOPsPerSample
		}
		return 6 * m.ActiveParams() * math.Max(float64(seq), 1)
	}
	s := float64(seq)
	attn := 12 * float64(m.Layers) * float64(m.Heads*m.Head()) * s * s
	if l, ok := m.Latent(); ok { // scores of longer heads
		attn = 6 * float64(m.Layers) * (l.Q + l.Out) * s * s
	}
	switch m.Kind {
	case Decoder:
		attn /= 2
	case EncoderDecoder: // half of the layers have weight 1, the other half 1/2 + 1
		attn *= 1.25
	}
	perParam := 6.0
	if m.Adapter.Kind != FullTraining {
		perParam = 4 // no gradients of weights
	}
	return perParam*m.ActiveParams()*s + attn
}

// Validate reports why no plan can be made for m.
func (m Model) Validate() error {
	if m.Name == "" {
		return errors.New("spec: model has no name")
	}
	for _, f := range []struct {
		name string
		v    int
	}{{"layers", m.Layers}, {"hidden", m.Hidden}, {"ffn", m.FFN}, {"heads", m.Heads}, {"kv_heads", m.KVHeads},
		{"head_dim", m.HeadDim}, {"vocab", m.Vocab}, {"seq_len", m.SeqLen}, {"q_rank", m.QRank}, {"kv_rank", m.KVRank}, {"experts", m.Experts},
		{"experts_per_token", m.ExpertsPerToken}, {"expert_ffn", m.ExpertFFN}, {"shared_experts", m.SharedExperts},
		{"dense_layers", m.DenseLayers}} {
		if f.v < 0 {
			return fmt.Errorf("spec: model %s: %s=%d is negative", m.Name, f.name, f.v)
		}
	}
	for _, f := range []float64{m.ParamCount, m.ActiveParamCount, m.FLOPsPerSample} {
		if !(f >= 0) || math.IsInf(f, 0) {
			return fmt.Errorf("spec: model %s: a count of %g is not finite and >= 0", m.Name, f)
		}
	}
	if m.Adapter.Kind != FullTraining && (m.Adapter.Rank < 1 || !m.HasShape()) {
		return fmt.Errorf("spec: model %s: adapter %s needs a rank above 0, and layers and widths", m.Name, m.Adapter)
	}
	if m.HasShape() && (m.Heads == 0 || m.FFN == 0 && m.ExpertFFN == 0) {
		return fmt.Errorf("spec: model %s: heads=%d and ffn=%d must be positive", m.Name, m.Heads, m.FFN)
	}
	if !m.HasShape() && m.ParamCount <= 0 {
		return fmt.Errorf("spec: model %s has neither layers and hidden size nor a parameter count", m.Name)
	}
	if m.Experts > 0 && (m.ExpertsPerToken <= 0 || m.ExpertsPerToken > m.Experts) {
		return fmt.Errorf("spec: model %s: experts_per_token=%d is not in 1..%d", m.Name, m.ExpertsPerToken, m.Experts)
	}
	return nil
}
