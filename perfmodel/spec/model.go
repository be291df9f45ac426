package spec

import "math"

// Kind is the architecture of a Model; it determines how its work is counted.
type Kind string

const (
	Decoder        Kind = "decoder"         // causal transformer: GPT, Llama, mixture of experts
	Encoder        Kind = "encoder"         // bidirectional transformer: BERT, RoBERTa
	EncoderDecoder Kind = "encoder-decoder" // T5; Layers counts both stacks
	Vision         Kind = "vision"          // vision or diffusion transformer; SeqLen counts patches and text tokens
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

	// Window is the number of tokens, the current one included, that an attention layer with a sliding window
	// sees; WindowLayers is the number of such layers. The other attention layers see the whole sequence.
	Window       int `json:"window,omitempty"`
	WindowLayers int `json:"window_layers,omitempty"`

	// Hybrids: SSMLayers have a Mamba 2 mixer (Dao and Gu 2024, arXiv 2405.21060), or linear attention of the same
	// form, instead of attention. SSMHeads x SSMHeadDim is the inner width of the mixer; SSMState is the width of
	// the state of one head, and SSMGroups the number of groups of heads that share their B and C matrices.
	SSMLayers  int `json:"ssm_layers,omitempty"`
	SSMHeads   int `json:"ssm_heads,omitempty"`
	SSMHeadDim int `json:"ssm_head_dim,omitempty"`
	SSMState   int `json:"ssm_state,omitempty"`
	SSMGroups  int `json:"ssm_groups,omitempty"`
	// MLPLayers is the number of layers that are an MLP, or experts, alone; then no other layer has an MLP
	// (Nemotron-H, arXiv 2504.03624). 0 = every layer has an MLP after its mixer.
	MLPLayers int `json:"mlp_layers,omitempty"`

	GatedMLP       bool `json:"gated_mlp,omitempty"`       // three MLP matrices instead of two
	TiedEmbeddings bool `json:"tied_embeddings,omitempty"` // input and output embedding shared

	Experts         int `json:"experts,omitempty"`           // routed experts per MoE layer, 0 = dense
	ExpertsPerToken int `json:"experts_per_token,omitempty"` // top-k
	ExpertFFN       int `json:"expert_ffn,omitempty"`        // inner width of one expert
	SharedExperts   int `json:"shared_experts,omitempty"`    // experts that process every token
	DenseLayers     int `json:"dense_layers,omitempty"`      // layers with a dense MLP in an MoE model, the first ones without MoEEvery
	// MoEEvery n gives every n-th layer experts (Llama 4 Maverick: 2), and the others are DenseLayers; 0 = all but the
	// first DenseLayers have them.
	MoEEvery int `json:"moe_every,omitempty"`
	// ExpertHidden is the width to which tokens are projected before routed experts, and from which they are
	// projected back (latent mixture of experts, Nemotron 3); 0 = Hidden.
	ExpertHidden int `json:"expert_hidden,omitempty"`

	// MTPLayers is the number of modules that predict tokens further ahead: each has a projection of two inputs, an
	// attention and an MLP or experts, and uses the vocabulary head once more (multi-token prediction, DeepSeek-V3,
	// arXiv 2412.19437, section 2.2). Parameter counts are without them, as they are published.
	MTPLayers int `json:"mtp_layers,omitempty"`

	Tower Tower `json:"tower,omitzero"`

	// NodeLimit is the most nodes on which the experts of one token are (DeepSeek-V2, arXiv 2405.04434, section 2.2.2;
	// DeepSeek-V3, arXiv 2412.19437, section 2.1.2); 0 = any number.
	NodeLimit int `json:"node_limit,omitempty"`

	// Imbalance is the number of tokens that the experts of the busiest device of an expert parallel group receive, over the
	// mean of the group; 0 = 1, all receive as many.
	Imbalance float64 `json:"imbalance,omitempty"`

	// Packed is the mean length in tokens of the documents that are packed into a sample, which attend to themselves
	// only; 0 = a sample is one document.
	Packed int `json:"packed,omitempty"`

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

// DenseMLPParams returns the parameters of one dense MLP.
func (m Model) DenseMLPParams() float64 {
	return m.mlpMatrices() * float64(m.Hidden) * float64(m.FFN)
}

// ExpertIn returns the width of the input and output of a routed expert.
func (m Model) ExpertIn() int {
	if m.ExpertHidden > 0 {
		return m.ExpertHidden
	}
	return m.Hidden
}

// ExpertParams returns the parameters of one routed expert.
func (m Model) ExpertParams() float64 {
	return m.mlpMatrices() * float64(m.ExpertIn()) * float64(m.ExpertFFN)
}

// SharedExpertParams returns the parameters of all shared experts of one layer, with the projections of
// ExpertHidden.
func (m Model) SharedExpertParams() float64 {
	h := float64(m.Hidden)
	return m.mlpMatrices()*h*float64(m.SharedExperts*m.ExpertFFN) + 2*h*float64(m.ExpertHidden)
}

// AheadLayers returns the layers without and with experts of the modules for multi-token prediction: one for each module,
// or an attention and an MLP or experts in models with layers that are an MLP alone. Adapters are trained without them.
func (m Model) AheadLayers() (dense, moe int) {
	if m.Adapter.Kind != FullTraining {
		return 0, 0
	}
	switch k := m.MTPLayers; {
	case m.Experts > 0 && m.MLPLayers > 0:
		return k, k
	case m.Experts > 0:
		return 0, k
	case m.MLPLayers > 0:
		return 2 * k, 0
	default:
		return k, 0
	}
}

// SSMIn returns the width of the input projection of a Mamba 2 mixer: the gate, the input, B and C, and the step size
// of each head (Dao and Gu 2024, section 7).
func (m Model) SSMIn() float64 {
	return float64(2*m.SSMHeads*m.SSMHeadDim + 2*m.SSMGroups*m.SSMState + m.SSMHeads)
}

// SSMParams returns the parameters of the input and output projections of one Mamba 2 mixer. Convolution, norm and
// biases are below 0.1 % and left out.
func (m Model) SSMParams() float64 {
	return float64(m.Hidden) * (m.SSMIn() + float64(m.SSMHeads*m.SSMHeadDim))
}

// ssmChunk is the number of tokens of one chunk of Mamba 2's algorithm: 128 in Nemotron-H, 256 in Mamba 2.
const ssmChunk = 128

// SSMFLOPs returns the forward FLOPs of the core of one Mamba 2 mixer for one token, without projections. Within a
// chunk of Q tokens the core is masked attention, Q·(G·N + H·P); between chunks states are built and read,
// 4·H·P·N (Dao and Gu 2024, section 6).
func (m Model) SSMFLOPs() float64 {
	inner, n := float64(m.SSMHeads*m.SSMHeadDim), float64(m.SSMState)
	return ssmChunk*(float64(m.SSMGroups)*n+inner) + 4*inner*n
}

// AttentionLayers returns the number of layers with attention.
func (m Model) AttentionLayers() int { return max(m.Layers-m.SSMLayers-m.MLPLayers, 0) }

// LayersWithMLP returns the number of layers with an MLP or experts.
func (m Model) LayersWithMLP() int {
	if m.MLPLayers > 0 {
		return m.MLPLayers
	}
	return m.Layers
}

// MoELayers returns the number of layers with routed experts.
func (m Model) MoELayers() int {
	if m.Experts == 0 {
		return 0
	}
	return max(m.LayersWithMLP()-m.DenseLayers, 0)
}

// InterleavedDense returns the number of layers with a dense MLP if every MoEEvery-th layer has experts; 0 without
// MoEEvery.
func (m Model) InterleavedDense() int {
	if m.MoEEvery <= 1 {
		return 0
	}
	return m.Layers - m.Layers/m.MoEEvery
}

// LeadingDense returns the number of layers with a dense MLP before the first layer with experts; 0 if layers of both
// kinds alternate, or all are of one kind.
func (m Model) LeadingDense() int {
	if m.MoELayers() == 0 || m.MLPLayers > 0 || m.MoEEvery > 1 {
		return 0
	}
	return m.DenseLayers
}

// ScoreShare returns the share of the scores of seq x seq tokens that attention computes, the mean of all layers
// with attention: 1/2 if it is causal, less with a Window. Of packed documents of d tokens only the d/seq blocks on the
// diagonal are computed, each like a sample of d tokens. This is exact for documents of equal length; for others it is if
// Packed is the mean over tokens, Σd²/Σd.
func (m *Model) ScoreShare(seq int) float64 {
	if d := m.Document(seq); d < seq {
		return m.documentShare(d) * float64(d) / float64(seq)
	}
	return m.documentShare(seq)
}

// documentShare is ScoreShare of one document.
func (m *Model) documentShare(seq int) float64 {
	whole := 1.0
	if m.Kind == Decoder {
		whole = 0.5
	}
	layers := float64(m.AttentionLayers())
	if m.Window <= 0 || m.Window >= seq || layers == 0 {
		return whole
	}
	local := min(float64(m.WindowLayers)/layers, 1)
	w := float64(m.Window) / float64(seq)
	if m.Kind == Decoder {
		w -= w * w / 2 // the first tokens see fewer than the window
	}
	return (1-local)*whole + local*w
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
	return m.shapeParams(m.Experts)
}

// ActiveParams returns the number of parameters that process one token; for dense models it equals Params.
func (m Model) ActiveParams() float64 {
	if m.ActiveParamCount > 0 {
		return m.ActiveParamCount
	}
	if m.Experts == 0 {
		return m.Params()
	}
	return m.shapeParams(m.ExpertsPerToken)
}

// shapeParams returns the size of all weight matrices, with that many routed experts per layer.
func (m Model) shapeParams(routed int) float64 {
	if !m.HasShape() {
		return 0
	}
	l, mlps, moe := float64(m.Layers), float64(m.LayersWithMLP()), float64(m.MoELayers())
	p := float64(m.AttentionLayers())*m.AttentionParams() + (mlps-moe)*m.DenseMLPParams() + m.EmbeddingParams()
	p += moe*(float64(routed)*m.ExpertParams()+m.SharedExpertParams()+float64(m.Hidden*m.Experts)) + float64(m.SSMLayers)*m.SSMParams()
	if m.Kind == EncoderDecoder {
		p += l / 2 * m.AttentionParams() // cross attention of the decoder half
	}
	return p + m.Tower.Params()
}

// TrainFLOPs returns the FLOPs of the forward and backward pass of one sample of seq tokens, without
// recomputation: 6 x active parameters x tokens, plus attention scores, which count half if causal (Chowdhery
// et al., PaLM, 2022, appendix B) and less with a Window, plus the core of state-space mixers. The parameters of a
// Tower count for its own tokens. An encoder-decoder has seq tokens in both stacks; its decoder has causal
// self-attention and cross attention. An Opaque model has 3 x FLOPsPerSample, or 6 x parameters x tokens if
// that is unknown. With an Adapter, frozen weights have no gradients: 4 x active parameters x tokens. seq 0 means the
// model's SeqLen.
func (m Model) TrainFLOPs(seq int) float64 {
	c := m.TrainCost()
	return c.FLOPs(seq)
}

// TrainCost is Model.TrainFLOPs for many lengths of samples.
type TrainCost struct {
	model    *Model
	perToken float64 // of parameters
	scores   float64 // of attention, times the square of the tokens and Model.ScoreShare
	ssm      float64 // of the core of state-space mixers, per token
	tower    float64 // per sample
}

// TrainCost returns the cost of m, which must not change while that is in use.
func (m *Model) TrainCost() TrainCost {
	c := TrainCost{model: m}
	if !m.HasShape() {
		c.perToken = 6 * m.ActiveParams()
		return c
	}
	layers := float64(m.AttentionLayers())
	c.scores = 12 * layers * float64(m.Heads*m.Head())
	if l, ok := m.Latent(); ok { // scores of longer heads
		c.scores = 6 * layers * (l.Q + l.Out)
	}
	c.ssm = 3 * float64(m.SSMLayers) * m.SSMFLOPs()
	perParam := 6.0
	if m.Adapter.Kind != FullTraining {
		perParam = 4 // no gradients of weights
	}
	c.perToken = perParam * (m.ActiveParams() - m.Tower.Params())
	c.tower = m.Tower.TrainFLOPs()
	return c
}

// FLOPs returns TrainFLOPs for samples of seq tokens.
func (c *TrainCost) FLOPs(seq int) float64 {
	m := c.model
	if seq == 0 {
		seq = m.SeqLen
	}
	s := float64(seq)
	if !m.HasShape() {
		if m.FLOPsPerSample > 0 {
			return 3 * m.FLOPsPerSample
		}
		return c.perToken * math.Max(s, 1)
	}
	attn := c.scores * s * s * m.ScoreShare(seq)
	if m.Kind == EncoderDecoder { // half of the layers have weight 1, the other half 1/2 + 1
		attn *= 1.25
	}
	return c.perToken*s + (attn + c.ssm*s) + c.tower
}
