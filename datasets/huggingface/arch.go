package huggingface

import (
	"encoding/json"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// arch is one architecture of the transformers library: the defaults of its config class, and its
// exceptions. From the configuration_*.py of huggingface/transformers 4.57.
type arch struct {
	kind     spec.Kind
	gated    bool           // the MLP has three matrices
	tied     bool           // default of tie_word_embeddings
	defaults map[string]any // defaults of other fields
	adjust   func(*config, *spec.Model)
	// window returns the number of layers with a sliding window, if the file does not list them; nil = none has one
	window func(c *config, layers int) int
}

// Architectures with several names.
var (
	gemma3Arch = arch{kind: spec.Decoder, gated: true, tied: true, window: allBut(6), defaults: map[string]any{"head_dim": 256,
		"num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 262208, "max_position_embeddings": 131072, "sliding_window": 4096}}
	llama4Arch   = arch{kind: spec.Decoder, gated: true, adjust: llama4, window: allBut(4)}
	qwenVLArch   = arch{kind: spec.Decoder, gated: true, adjust: visionTower}
	miniMaxArch  = arch{kind: spec.Decoder, gated: true, adjust: miniMax}
	deepSeekArch = arch{kind: spec.Decoder, gated: true, adjust: latentAttention}

	sparseDeepSeekArch = arch{kind: spec.Decoder, gated: true, adjust: indexedAttention, window: everyLayer}
)

// architectures is indexed by model_type.
var architectures = map[string]arch{
	"llama":       {kind: spec.Decoder, gated: true},
	"mistral":     {kind: spec.Decoder, gated: true, defaults: map[string]any{"num_key_value_heads": 8}, window: everyLayer},
	"ministral":   {kind: spec.Decoder, gated: true, window: everyLayer},
	"mixtral":     {kind: spec.Decoder, gated: true, defaults: map[string]any{"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2}},
	"qwen2":       {kind: spec.Decoder, gated: true, window: upperLayers},
	"qwen2_moe":   {kind: spec.Decoder, gated: true, defaults: map[string]any{"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632}},
	"qwen3":       {kind: spec.Decoder, gated: true, defaults: map[string]any{"head_dim": 128}, window: upperLayers},
	"qwen3_moe":   {kind: spec.Decoder, gated: true, defaults: map[string]any{"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}},
	"gemma":       {kind: spec.Decoder, gated: true, tied: true, defaults: map[string]any{"head_dim": 256}},
	"gemma2":      {kind: spec.Decoder, gated: true, tied: true, defaults: map[string]any{"head_dim": 256, "num_key_value_heads": 4, "sliding_window": 4096}, window: allBut(2)},
	"gemma3":      gemma3Arch,
	"gemma3_text": gemma3Arch,
	"phi":         {kind: spec.Decoder},
	"phi3":        {kind: spec.Decoder, gated: true, window: everyLayer},
	"phimoe":      {kind: spec.Decoder, gated: true},
	"olmo":        {kind: spec.Decoder, gated: true},
	"olmo2":       {kind: spec.Decoder, gated: true},
	"olmo3":       {kind: spec.Decoder, gated: true, defaults: map[string]any{"sliding_window": 4096}, window: allBut(4)},
	"olmoe":       {kind: spec.Decoder, gated: true, defaults: map[string]any{"num_experts": 64, "num_experts_per_tok": 8}},
	"granite":     {kind: spec.Decoder, gated: true},
	"granitemoe":  {kind: spec.Decoder, gated: true},
	"cohere":      {kind: spec.Decoder, gated: true, tied: true},
	"cohere2":     {kind: spec.Decoder, gated: true, tied: true, defaults: map[string]any{"sliding_window": 4096}, window: allBut(4)},
	"internlm2":   {kind: spec.Decoder, gated: true},
	"internlm3":   {kind: spec.Decoder, gated: true},
	"smollm3":     {kind: spec.Decoder, gated: true, tied: true},
	"stablelm":    {kind: spec.Decoder, gated: true},
	"starcoder2":  {kind: spec.Decoder, tied: true, window: everyLayer},
	"nemotron":    {kind: spec.Decoder},
	"glm4":        {kind: spec.Decoder, gated: true},
	"glm4_moe":    {kind: spec.Decoder, gated: true},
	"gpt_oss":     {kind: spec.Decoder, gated: true, defaults: map[string]any{"head_dim": 64, "sliding_window": 128}, window: allBut(2)},
	"llama4":      llama4Arch,
	"llama4_text": llama4Arch,
	"qwen2_vl":    qwenVLArch,
	"qwen2_5_vl":  qwenVLArch,

	"mamba2":          {kind: spec.Decoder, defaults: mamba2Defaults, adjust: mamba2},
	"nemotron_h":      {kind: spec.Decoder, defaults: nemotronHDefaults, adjust: nemotronH},
	"qwen3_next":      {kind: spec.Decoder, gated: true, defaults: qwen3NextDefaults, adjust: qwen3Next},
	"minimax":         miniMaxArch,
	"minimax_text_01": miniMaxArch,
	"minimax_m1":      miniMaxArch,

	"deepseek_v2":  deepSeekArch,
	"deepseek_v3":  deepSeekArch,
	"deepseek_v32": sparseDeepSeekArch, // sparse attention to index_topk tokens is counted as a window
	"kimi_k2":      deepSeekArch,

	"gpt2":        {kind: spec.Decoder, tied: true, adjust: learnedPositions},
	"gpt_bigcode": {kind: spec.Decoder, tied: true, adjust: oneKVHead("multi_query", true)},
	"gpt_neo":     {kind: spec.Decoder, tied: true, adjust: learnedPositions},
	"gpt_neox":    {kind: spec.Decoder},
	"gptj":        {kind: spec.Decoder},
	"codegen":     {kind: spec.Decoder},
	"bloom":       {kind: spec.Decoder, tied: true, defaults: map[string]any{"seq_length": 2048}, adjust: fourTimesWide},
	"opt":         {kind: spec.Decoder, tied: true, adjust: opt},
	"falcon":      {kind: spec.Decoder, tied: true, defaults: map[string]any{"max_position_embeddings": 2048}, adjust: falcon},
	"mpt":         {kind: spec.Decoder, tied: true, adjust: mpt},

	"bert":        {kind: spec.Encoder, tied: true, adjust: bert},
	"roberta":     {kind: spec.Encoder, tied: true, adjust: roberta},
	"xlm-roberta": {kind: spec.Encoder, tied: true, adjust: roberta},
	"distilbert":  {kind: spec.Encoder, tied: true, adjust: learnedPositions},
	"electra":     {kind: spec.Encoder, tied: true, adjust: electra},
	"modernbert":  {kind: spec.Encoder, gated: true, tied: true},

	"t5":   {kind: spec.EncoderDecoder, tied: true, defaults: map[string]any{"d_kv": 64, "n_positions": 512}, adjust: t5},
	"mt5":  {kind: spec.EncoderDecoder, gated: true, defaults: map[string]any{"d_kv": 64, "n_positions": 512}, adjust: t5},
	"umt5": {kind: spec.EncoderDecoder, gated: true, defaults: map[string]any{"d_kv": 64, "n_positions": 512}, adjust: t5},
	"bart": {kind: spec.EncoderDecoder, tied: true, adjust: bart},

	"marian": {kind: spec.EncoderDecoder, tied: true, adjust: marian},

	"whisper": {kind: spec.EncoderDecoder, tied: true, adjust: whisper},

	"vit":  {kind: spec.Vision, adjust: vit},
	"deit": {kind: spec.Vision, adjust: vit},
}

// extra adds weights that the shape of m cannot express to its counts.
func extra(m *spec.Model, n float64) {
	total, active := m.Params(), m.ActiveParams()
	if m.ParamCount = total + n; m.Experts > 0 {
		m.ActiveParamCount = active + n
	}
}

// vectors adds the biases and norms of m, which are about 0.1 % of the weights of small networks: in each layer four biases
// of the attention, two of the MLP, and two norms with a weight and a bias; beside the layers a norm and others of n
// elements.
func vectors(m *spec.Model, n float64) {
	h := float64(m.Hidden)
	extra(m, float64(m.Layers)*(9*h+float64(m.FFN))+2*h+n)
}

// learnedPositions adds one vector per position.
func learnedPositions(c *config, m *spec.Model) {
	n := c.count(maxTokens, "n_positions", "max_position_embeddings")
	extra(m, float64(n)*float64(m.Hidden))
	vectors(m, 0)
}

// oneKVHead is for architectures that share one key and value among all heads if a field says so.
func oneKVHead(field string, def bool) func(*config, *spec.Model) {
	return func(c *config, m *spec.Model) {
		if c.flag(field, def) {
			m.KVHeads = 1
		}
		learnedPositions(c, m)
	}
}

// fourTimesWide is for architectures without a field for the width of the MLP.
func fourTimesWide(_ *config, m *spec.Model) { m.FFN = min(4*m.Hidden, maxWidth) }

// opt has positions from 2 on; its 350m has embeddings of another width, and no last norm.
func opt(c *config, m *spec.Model) {
	extra(m, float64(c.count(maxTokens, "max_position_embeddings")+2)*float64(m.Hidden))
	vectors(m, 0)
	if !c.flag("do_layer_norm_before", true) {
		extra(m, -2*float64(m.Hidden))
	}
	if w := c.count(maxWidth, "word_embed_proj_dim"); w > 0 && w != m.Hidden {
		reused(m, m.Params()+narrowed(m, w)+float64(w)*float64(m.Hidden)) // into the layers, and out of them
	}
}

// narrowed is how many parameters more m has with token embeddings of width w, and a matrix from that width to the layers'.
func narrowed(m *spec.Model, w int) float64 {
	return float64(m.Vocab)*(float64(w)-float64(m.Hidden)) + float64(w)*float64(m.Hidden)
}

// reused sets the weights of m to total parameters, fewer than a token passes: weights are shared among layers, or the
// embeddings are narrower than the layers.
func reused(m *spec.Model, total float64) { m.ActiveParamCount, m.ParamCount = m.Params(), total }

// electra has embeddings, positions and two token types of another width than the layers in its small form.
func electra(c *config, m *spec.Model) {
	positions := float64(c.count(maxTokens, "max_position_embeddings")) + 2
	h := float64(m.Hidden)
	vectors(m, (positions+2)*h-2*h) // one norm beside the layers, of the embeddings
	if n := c.count(maxWidth, "embedding_size"); n > 0 && n != m.Hidden {
		reused(m, m.Params()+narrowed(m, n)+h+(positions+2)*(float64(n)-h))
	}
}

// falcon has one key/value head in its first architecture, groups in the second.
func falcon(c *config, m *spec.Model) {
	switch {
	case c.flag("new_decoder_architecture", false):
	case c.flag("multi_query", true):
		m.KVHeads = 1
	default:
		m.KVHeads = 0
	}
}

// mpt has the width of the MLP as a multiple, and the key/value heads in an object.
func mpt(c *config, m *spec.Model) {
	m.FFN = min(int(c.ratio("expansion_ratio", 4)*float64(m.Hidden)), maxWidth)
	attn := &config{}
	if json.Unmarshal(c.fields["attn_config"], &attn.fields) == nil {
		m.KVHeads = attn.count(maxWidth, "kv_n_heads")
		if attn.err != nil {
			c.fail("attn_config: %w", attn.err)
		}
	}
}

// bert has positions, two token types and a pooler.
func bert(c *config, m *spec.Model) {
	h := float64(m.Hidden)
	extra(m, (float64(c.count(maxTokens, "max_position_embeddings"))+2)*h+h*h)
	vectors(m, h)
}

// roberta is bert with one token type and two unused positions.
func roberta(c *config, m *spec.Model) {
	bert(c, m)
	m.ParamCount -= float64(m.Hidden)
	if m.SeqLen > 2 {
		m.SeqLen -= m.SeqLen % 128
	}
}

// t5 counts the layers of one stack. With an untied head the encoder and decoder still share their
// embedding.
func t5(c *config, m *spec.Model) {
	decoder := c.count(maxLayers, "num_decoder_layers")
	if decoder == 0 {
		decoder = m.Layers
	}
	if act := c.word("feed_forward_proj"); act != "" {
		m.GatedMLP = len(act) > 6 && act[:6] == "gated-"
	}
	stacks(c, m, m.Layers, decoder)
}

// stacks sets the layers of an encoder and a decoder. The shape has cross attention in half of them.
func stacks(c *config, m *spec.Model, encoder, decoder int) {
	m.Layers = encoder + decoder
	if encoder != decoder {
		c.warn("%d encoder and %d decoder layers are taken as halves", encoder, decoder)
		extra(m, float64(decoder-encoder)/2*m.AttentionParams())
	}
}

// bart has fields for both stacks, and in each learned positions and a norm of the embeddings.
func bart(c *config, m *spec.Model) {
	translator(c, m)
	h := float64(m.Hidden)
	extra(m, 2*float64(c.count(maxTokens, "max_position_embeddings")+2)*h+4*h)
}

// mbart is bart with a norm after each stack.
func mbart(c *config, m *spec.Model) {
	bart(c, m)
	extra(m, 4*float64(m.Hidden))
}

// m2m has no weights for positions, and a norm after each stack only.
func m2m(c *config, m *spec.Model) {
	translator(c, m)
	extra(m, 4*float64(m.Hidden))
}

// marian is m2m without a norm after each stack, and with the table of its sinusoids among the weights of both.
func marian(c *config, m *spec.Model) {
	translator(c, m)
	extra(m, 2*float64(c.count(maxTokens, "max_position_embeddings"))*float64(m.Hidden))
}

// translator is an encoder and a decoder with biases and norms in all layers.
func translator(c *config, m *spec.Model) {
	encoder, decoder := encoderAndDecoder(c, m)
	h, f := float64(m.Hidden), float64(m.FFN)
	extra(m, float64(encoder)*(9*h+f)+float64(decoder)*(15*h+f))
}

// encoderAndDecoder reads the fields for both stacks.
func encoderAndDecoder(c *config, m *spec.Model) (encoder, decoder int) {
	encoder, decoder = c.count(maxLayers, "encoder_layers"), c.count(maxLayers, "decoder_layers")
	m.Heads, m.FFN = c.count(maxWidth, "encoder_attention_heads"), c.count(maxWidth, "encoder_ffn_dim")
	stacks(c, m, encoder, decoder)
	return encoder, decoder
}

// llama4 has a dense MLP of another width between the layers with experts, and
// one shared expert.
func llama4(c *config, m *spec.Model) {
	if m.Experts > 0 {
		m.SharedExperts, m.ExpertFFN = 1, m.FFN
		if w := c.count(maxWidth, "intermediate_size_mlp"); w > 0 {
			m.FFN = w
		}
	}
}

// latentAttention counts the projections of multi-head latent attention
// (DeepSeek-AI, DeepSeek-V2, 2024, section 2.1), which are not those of the
// heads the shape has:
//
//	h·q + q·a·(n+r) + h·(k+r) + k·a·(n+v) + a·v·h
//
//	h     hidden size
//	a     heads
//	q, k  ranks of the queries' and the keys' and values' latent vectors; without
//	      q the queries are h·a·(n+r)
//	n, r  width of a head's part without and with rotation
//	v     width of a head's values
func latentAttention(c *config, m *spec.Model) {
	h, a := float64(m.Hidden), float64(m.Heads)
	q, k := float64(c.count(maxWidth, "q_lora_rank")), float64(c.count(maxWidth, "kv_lora_rank"))
	n, r := float64(c.count(maxWidth, "qk_nope_head_dim")), float64(c.count(maxWidth, "qk_rope_head_dim"))
	v := float64(c.count(maxWidth, "v_head_dim"))
	if k == 0 || n == 0 || v == 0 {
		c.fail("kv_lora_rank, qk_nope_head_dim and v_head_dim must be there and positive")
		return
	}
	m.HeadDim, m.KVHeads, m.QRank, m.KVRank = int(v), m.Heads, int(q), int(k)
	queries := h * a * (n + r)
	if q > 0 {
		queries = h*q + q*a*(n+r)
	}
	counted := queries + h*(k+r) + k*a*(n+v) + a*v*h
	if more := counted - m.AttentionParams(); more != 0 { // other widths of heads than DeepSeek's
		extra(m, float64(m.AttentionLayers())*more)
	}
}

// indexedAttention is latentAttention with an indexer that chooses the tokens to attend to (DeepSeek-V3.2, arXiv
// 2512.02556, section 2.1): projections of its queries, of its one key, and of the weights of its heads.
func indexedAttention(c *config, m *spec.Model) {
	latentAttention(c, m)
	n, d := float64(c.count(maxWidth, "index_n_heads")), float64(c.count(maxWidth, "index_head_dim"))
	extra(m, float64(m.Layers)*(float64(m.QRank)*n*d+float64(m.Hidden)*(d+n)))
}
