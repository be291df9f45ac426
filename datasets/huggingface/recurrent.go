package huggingface

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// recurrentHead is the width of the heads by which mixers without heads are counted.
const recurrentHead = 64

// recurrent are hybrids of attention and recurrent or convolutional mixers, and recurrent networks. From transformers
// 4.57, and for Kimi Linear from the model's own repository.
func recurrent() map[string]arch {
	lfm2Arch := arch{kind: spec.Decoder, gated: true, tied: true, defaults: map[string]any{"conv_L_cache": 3, "vocab_size": 65536}, adjust: lfm2}
	return map[string]arch{
		"lfm2":     lfm2Arch,
		"lfm2_moe": lfm2Arch,
		"recurrent_gemma": {kind: spec.Decoder, gated: true, tied: true, defaults: map[string]any{"vocab_size": 256000, "conv1d_width": 4, "attention_window_size": 2048,
			"num_key_value_heads": 1}, adjust: recurrentGemma},
		"falcon_h1": {kind: spec.Decoder, gated: true, defaults: map[string]any{"vocab_size": 128000, "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_expand": 2,
			"num_key_value_heads": 8}, adjust: falconH1},
		"zamba2": {kind: spec.Decoder, gated: true, tied: true, defaults: map[string]any{"vocab_size": 32000, "num_mem_blocks": 1, "mamba_d_state": 64, "mamba_ngroups": 1,
			"n_mamba_heads": 8, "mamba_expand": 2, "adapter_rank": 128}, adjust: zamba2},
		"kimi_linear": {kind: spec.Decoder, gated: true, adjust: kimiLinear},
		"rwkv":        {kind: spec.Decoder, defaults: map[string]any{"num_attention_heads": 1, "vocab_size": 50277}, adjust: rwkv},
	}
}

// mixers makes n layers of m have a mixer of an inner width instead of attention, counted as a state-space mixer with a
// state of 1: its core is far less work than its projections. It has params parameters.
func (c *config) mixers(m *spec.Model, n, inner int, params float64) {
	if n > 0 && (inner < recurrentHead || inner%recurrentHead != 0) {
		c.fail("a mixer of %d channels is not known", inner)
		return
	}
	m.SSMLayers, m.SSMHeads, m.SSMHeadDim, m.SSMState, m.SSMGroups = n, inner/recurrentHead, recurrentHead, 1, 1
	extra(m, float64(n)*(params-m.SSMParams()))
}

// lfm2 has gated short convolutions in most layers, attention with a norm of queries and keys in the others (Liquid AI,
// LFM2, 2025, arXiv 2511.23404). The width of its MLP is stated before it is reduced to two thirds.
func lfm2(c *config, m *spec.Model) {
	if !c.has("layer_types", "full_attn_idxs") {
		c.fail("layer_types or full_attn_idxs must be there")
		return
	}
	attention, ok := c.layersOf("full_attn_idxs", "layer_types", m.Layers, "full_attention", "conv")
	if !ok {
		return
	}
	if n := c.count(maxWidth, "block_ff_dim"); n > 0 {
		m.FFN = n
	} else if c.count(maxWidth, "intermediate_size") == 0 {
		c.fail("block_ff_dim or intermediate_size must be there")
		return
	}
	if c.modelType == "lfm2" && c.flag("block_auto_adjust_ff_dim", true) {
		of := max(c.count(maxWidth, "block_multiple_of"), 1)
		if !c.has("block_multiple_of") {
			of = 256
		}
		m.FFN = (int(c.ratio("block_ffn_dim_multiplier", 1)*float64(m.FFN*2/3)) + of - 1) / of * of
	}
	m.TiedEmbeddings = c.flag("tie_word_embeddings", c.flag("tie_embedding", true))
	h := float64(m.Hidden)
	convolution := 4*h*h + float64(c.count(maxWidth, "conv_L_cache"))*h
	c.mixers(m, m.Layers-attention, m.Hidden, convolution)
	extra(m, float64(attention)*2*float64(m.Head())+float64(2*m.Layers+1)*h)
}

// layersOf counts the layers of a kind, by a list of their numbers or one of the types of layers. Each type must be one of
// names. The first of names is the kind.
func (c *config) layersOf(indices, types string, layers int, names ...string) (int, bool) {
	if c.has(indices) {
		return c.numbered(indices, 0, layers)
	}
	kinds, ok := c.layerTypes(types, layers)
	if !ok {
		return 0, false
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if !slices.Contains(names, kind) {
			c.fail("%s has a layer %q, want one of %s", types, kind, strings.Join(names, ", "))
			return 0, false
		}
	}
	return kinds[names[0]], true
}

// numbered counts the layers in a list of their numbers, which begin with first.
func (c *config) numbered(key string, first, layers int) (int, bool) {
	var list []int
	bad := json.Unmarshal(c.value(key), &list) != nil
	slices.Sort(list)
	for i, n := range list {
		bad = bad || n < first || n >= first+layers || i > 0 && n == list[i-1]
	}
	if bad {
		c.fail("%s=%s is not a list of different layers in %d..%d", key, truncate(c.value(key)), first, first+layers-1)
		return 0, false
	}
	return len(list), true
}

// recurrentGemma has a gated linear recurrence in two of three layers and attention with a window in the third (De et al.
// 2024, Griffin, arXiv 2402.19427). The width of its MLP is stated for both input matrices together.
func recurrentGemma(c *config, m *spec.Model) {
	var pattern []string
	raw := c.value("_block_types")
	if raw == nil {
		raw = c.value("block_types")
	}
	if raw == nil {
		raw = json.RawMessage(`["recurrent","recurrent","attention"]`)
	}
	if json.Unmarshal(raw, &pattern) != nil || len(pattern) == 0 {
		c.fail("block_types=%s is not a list of names", truncate(raw))
		return
	}
	for _, kind := range pattern {
		if kind != "recurrent" && kind != "attention" {
			c.fail("block_types has a layer %q, want recurrent or attention", kind)
			return
		}
	}
	recurrences := 0
	for i := range m.Layers {
		if pattern[i%len(pattern)] == "recurrent" {
			recurrences++
		}
	}
	m.FFN /= 2
	inner := c.count(maxWidth, "lru_width")
	if inner == 0 {
		inner = m.Hidden
	}
	h, w, f, heads := float64(m.Hidden), float64(inner), float64(m.FFN), float64(max(m.Heads, 1))
	gates := 2 * (w*w/heads + w)
	mixer := 2*(h*w+w) + w*h + h + (float64(c.count(maxWidth, "conv1d_width"))+1)*w + w + gates
	c.mixers(m, recurrences, inner, mixer)
	attention := m.Layers - recurrences
	extra(m, float64(attention)*h+float64(m.Layers)*(2*f+3*h)+h) // biases of output and MLP, norms
	if m.Window, m.WindowLayers = c.count(maxTokens, "attention_window_size"), attention; m.Window == 0 {
		m.WindowLayers = 0
	}
}

// falconH1 has attention and a mixer of Mamba 2 side by side in every layer, then an MLP (Zuo et al. 2025, arXiv
// 2507.22448). They are counted as three layers.
func falconH1(c *config, m *spec.Model) {
	blocks := m.Layers
	if blocks > maxLayers/3 {
		c.fail("num_hidden_layers=%d is more than %d", blocks, maxLayers/3)
		return
	}
	m.Layers, m.SSMLayers, m.MLPLayers = 3*blocks, blocks, blocks
	mixers2(c, m)
	if inner := c.count(maxWidth, "mamba_d_ssm"); inner > 0 && m.SSMHeads > 0 {
		m.SSMHeadDim = inner / m.SSMHeads
	}
	h := float64(m.Hidden)
	layer := mixerVectors(m) + 2*h
	if c.flag("mamba_rms_norm", false) {
		layer += float64(m.SSMHeads * m.SSMHeadDim)
	}
	extra(m, float64(blocks)*layer+h)
	c.warn("each of %d layers has attention, a mixer and an MLP: they are counted as three layers", blocks)
}

// zamba2 has a mixer of Mamba 2 in every layer, and before some a block of attention and MLP that has few copies, with
// adapters for each use (Glorioso et al. 2024, arXiv 2411.15242). Attention has twice the width, since it sees the
// embeddings too.
func zamba2(c *config, m *spec.Model) {
	if !c.has("hybrid_layer_ids", "layers_block_type") {
		c.fail("hybrid_layer_ids or layers_block_type must be there")
		return
	}
	uses, ok := c.layersOf("hybrid_layer_ids", "layers_block_type", m.Layers, "hybrid", "mamba")
	copies := c.count(maxLayers, "num_mem_blocks")
	if ok && (uses == 0 || copies == 0 || copies > uses || m.Layers+2*uses > maxLayers) {
		c.fail("%d layers use a shared block that has %d copies", uses, copies)
	}
	if c.err != nil {
		return
	}
	h, f, mixers := float64(m.Hidden), float64(m.FFN), m.Layers
	m.HeadDim = 2 * m.Hidden / max(m.Heads, 1)
	m.Layers, m.SSMLayers, m.MLPLayers = mixers+2*uses, mixers, uses
	m.SSMHeads, m.SSMState, m.SSMGroups = c.count(maxWidth, "n_mamba_heads"), c.count(maxWidth, "mamba_d_state"), c.count(maxWidth, "mamba_ngroups")
	if m.SSMHeadDim = c.countOrAuto("mamba_headdim"); m.SSMHeadDim == 0 {
		m.SSMHeadDim = c.count(maxWidth, "mamba_expand") * m.Hidden / max(m.SSMHeads, 1)
	}
	rank := float64(c.count(maxWidth, "adapter_rank"))
	each := h*h + rank*(h+2*f) // a matrix after the block, the adapter of its MLP
	if c.flag("use_shared_attention_adapter", false) {
		each += 3 * rank * 4 * h
	}
	shared := 14*h*h + m.DenseMLPParams() + 3*h
	extra(m, float64(mixers)*(mixerVectors(m)+float64(m.SSMHeads*m.SSMHeadDim)+h)+h+float64(uses)*(14*h*h-m.AttentionParams()+3*h+each))
	reused(m, m.Params()-float64(uses-copies)*shared)
	c.warn("%d of %d layers use one of %d blocks of attention and MLP: its weights are kept once and computed at each use", uses, mixers, copies)
}

// kimiLinear has delta attention in most layers, which is counted as a state-space mixer of its widths, and multi-head
// latent attention in the others (Kimi Team 2025, arXiv 2510.26692).
func kimiLinear(c *config, m *spec.Model) {
	linear := &config{}
	if json.Unmarshal(c.fields["linear_attn_config"], &linear.fields) != nil || !linear.has("full_attn_layers") {
		c.fail("linear_attn_config must be there, with a list full_attn_layers of layers")
		return
	}
	full, ok := linear.numbered("full_attn_layers", 1, m.Layers)
	if !ok {
		c.fail("linear_attn_config: %w", linear.err)
		return
	}
	for _, key := range []string{"routed_expert_hidden_size", "attn_res_block_size", "mla_use_output_gate"} {
		if c.has(key) {
			c.fail("%s changes the layers in a way that is not known", key)
			return
		}
	}
	heads, d, kernel := linear.count(maxWidth, "num_heads"), linear.count(maxWidth, "head_dim"), linear.count(maxWidth, "short_conv_kernel_size")
	if linear.err != nil || heads*d == 0 || heads*d > maxWidth {
		c.fail("linear_attn_config: num_heads=%d and head_dim=%d must be positive", heads, d)
		return
	}
	m.SSMLayers, m.SSMHeads, m.SSMHeadDim, m.SSMState, m.SSMGroups = m.Layers-full, heads, d, d, heads
	latentAttention(c, m)
	h, w, rank := float64(m.Hidden), float64(heads*d), float64(d)
	mixer := 4*h*w + 3*w*float64(kernel) + 2*rank*(h+w) + h*float64(heads) + float64(heads) + w + rank
	extra(m, float64(m.SSMLayers)*(mixer-m.SSMParams())+float64(2*m.Layers+1)*h)
}

// rwkv is RWKV-4: a recurrence and a gated MLP of two matrices and a gate (Peng et al. 2023, arXiv 2305.13048).
func rwkv(c *config, m *spec.Model) {
	inner := c.count(maxWidth, "attention_hidden_size")
	if inner == 0 {
		inner = m.Hidden
	}
	if !c.has("intermediate_size") {
		m.FFN = min(4*m.Hidden, maxWidth)
	}
	m.Heads, m.KVHeads, m.HeadDim = 0, 0, 0
	m.SeqLen = c.count(maxTokens, "context_length")
	h, w := float64(m.Hidden), float64(inner)
	c.mixers(m, m.Layers, inner, 4*h*w+2*w+3*h)
	extra(m, float64(m.Layers)*(h*h+6*h)+4*h) // the gate of the MLP, its mixes, norms
	c.warn("the recurrence of RWKV is counted as a state-space mixer with a state of 1")
}
