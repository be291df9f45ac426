package huggingface

import (
	"encoding/json"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// everyLayer is for architectures with the window in every layer.
func everyLayer(_ *config, layers int) int { return layers }

// upperLayers is for architectures with a switch, and the window from layer max_window_layers on.
func upperLayers(c *config, layers int) int {
	if !c.flag("use_sliding_window", false) {
		return 0
	}
	return max(layers-c.count(maxLayers, "max_window_layers"), 0)
}

// allBut is for architectures in which every n-th layer, unless the file has another number, sees all tokens and the
// others have the window.
func allBut(n int) func(*config, int) int {
	return func(c *config, layers int) int {
		every := n
		if given := c.count(maxLayers, "sliding_window_pattern", "_sliding_window_pattern"); given > 0 {
			every = given
		}
		return layers - layers/every
	}
}

// windows reads the sliding window, and the number of layers that have it. Chunked attention counts as a window.
func (c *config) windows(a arch, m *spec.Model) {
	if a.window == nil && !c.has("layer_types") {
		return
	}
	w := c.count(maxTokens, "sliding_window", "attention_chunk_size", "index_topk")
	if w == 0 {
		return
	}
	if types, ok := c.layerTypes("layer_types", m.Layers); ok {
		m.WindowLayers = types["sliding_attention"] + types["chunked_attention"]
	} else if a.window != nil {
		m.WindowLayers = min(a.window(c, m.Layers), m.AttentionLayers())
	}
	if m.WindowLayers > 0 {
		m.Window = w
	}
}

// layerTypes counts the types in a list with one for each layer; false without a list.
func (c *config) layerTypes(key string, layers int) (map[string]int, bool) {
	raw := c.value(key)
	if raw == nil {
		return nil, false
	}
	var types []string
	if err := json.Unmarshal(raw, &types); err != nil || len(types) != layers {
		c.fail("%s=%s is not a list of %d names", key, truncate(raw), layers)
		return nil, false
	}
	out := map[string]int{}
	for _, t := range types {
		out[t]++
	}
	return out, true
}

var mamba2Defaults = map[string]any{"hidden_size": 4096, "num_hidden_layers": 64, "vocab_size": 32768, "num_heads": 128, "head_dim": 64, "state_size": 128, "n_groups": 8}

// mamba2 has a state-space mixer in every layer, and no MLP.
func mamba2(c *config, m *spec.Model) {
	m.SSMLayers, m.SSMHeads, m.SSMHeadDim = m.Layers, m.Heads, m.HeadDim
	m.SSMState, m.SSMGroups = c.count(maxWidth, "state_size"), c.count(maxWidth, "n_groups")
	m.Heads, m.KVHeads, m.HeadDim, m.FFN = 0, 0, 0, 0
	extra(m, float64(m.Layers)*(mixerVectors(m)+float64(m.SSMHeads*m.SSMHeadDim)+float64(m.Hidden)))
}

// mixerVectors are the parameters of a Mamba 2 mixer that are not projections: a convolution over four tokens with its
// bias, and A, D and the bias of the step of each head.
func mixerVectors(m *spec.Model) float64 {
	return 5*float64(m.SSMHeads*m.SSMHeadDim+2*m.SSMGroups*m.SSMState) + 3*float64(m.SSMHeads)
}

var nemotronHDefaults = map[string]any{"mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8}

// nemotronH has layers that are a state-space mixer, attention, an MLP or experts alone.
func nemotronH(c *config, m *spec.Model) {
	var ssm, mlps, moe int
	if pattern := c.word("hybrid_override_pattern"); pattern != "" {
		ssm, moe = strings.Count(pattern, "M"), strings.Count(pattern, "E")
		mlps = moe + strings.Count(pattern, "-")
		if len(pattern) != m.Layers {
			c.fail("hybrid_override_pattern=%q is not of %d layers", pattern, m.Layers)
			return
		}
	} else if types, ok := c.layerTypes("layers_block_type", m.Layers); ok {
		ssm, moe = types["mamba"], types["moe"]
		mlps = moe + types["mlp"]
	} else {
		c.fail("hybrid_override_pattern or layers_block_type must be there")
		return
	}
	m.SSMLayers, m.MLPLayers, m.MoEEvery = ssm, mlps, 0
	m.SSMHeads, m.SSMHeadDim = c.count(maxWidth, "mamba_num_heads"), c.count(maxWidth, "mamba_head_dim")
	m.SSMState, m.SSMGroups = c.count(maxWidth, "ssm_state_size"), c.count(maxWidth, "n_groups")
	if d := c.count(maxWidth, "attention_head_dim"); d > 0 && m.HeadDim == 0 {
		m.HeadDim = d
	}
	if moe == 0 {
		m.Experts, m.ExpertsPerToken, m.ExpertFFN, m.SharedExperts, m.DenseLayers = 0, 0, 0, 0, 0
		return
	}
	m.DenseLayers, m.ExpertHidden = mlps-moe, c.count(maxWidth, "moe_latent_size")
	if shared := c.count(maxWidth, "moe_shared_expert_intermediate_size"); shared > 0 && m.ExpertFFN > 0 {
		m.SharedExperts = max(shared/m.ExpertFFN, 1)
	}
	if m.DenseLayers == 0 {
		m.FFN = 0
	}
}

var qwen3NextDefaults = map[string]any{"head_dim": 256, "num_key_value_heads": 2, "full_attention_interval": 4, "num_experts": 512, "num_experts_per_tok": 10,
	"moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "linear_num_value_heads": 32, "linear_num_key_heads": 16,
	"linear_key_head_dim": 128, "linear_value_head_dim": 128}

// qwen3Next has a gated delta net in most layers, which is counted as a state-space mixer of its widths, and gated
// attention in the others.
func qwen3Next(c *config, m *spec.Model) {
	if types, ok := c.layerTypes("layer_types", m.Layers); ok {
		m.SSMLayers = types["linear_attention"]
	} else if n := c.count(maxLayers, "full_attention_interval"); n > 0 {
		m.SSMLayers = m.Layers - m.Layers/n
	}
	m.SSMHeads, m.SSMHeadDim = c.count(maxWidth, "linear_num_value_heads"), c.count(maxWidth, "linear_value_head_dim")
	m.SSMState, m.SSMGroups = c.count(maxWidth, "linear_key_head_dim"), c.count(maxWidth, "linear_num_key_heads")
	gatedAttention(c, m)
}

// miniMax has lightning attention in most layers, which is counted as a state-space mixer of its widths.
func miniMax(c *config, m *spec.Model) {
	if raw := c.value("attn_type_list"); raw != nil {
		var kinds []int
		if err := json.Unmarshal(raw, &kinds); err != nil || len(kinds) != m.Layers {
			c.fail("attn_type_list=%s is not a list of %d numbers", truncate(raw), m.Layers)
			return
		}
		for _, k := range kinds {
			if k == 0 {
				m.SSMLayers++
			}
		}
	} else if types, ok := c.layerTypes("layer_types", m.Layers); ok {
		m.SSMLayers = types["linear_attention"]
	}
	m.SSMHeads, m.SSMHeadDim, m.SSMState, m.SSMGroups = m.Heads, m.Head(), m.Head(), m.Heads
}

// patchesOfImage are the patches of one image of 448 x 448 pixels, which the tower of Qwen2-VL merges to 256 tokens.
const patchesOfImage = 1024

// visionTower reads the vision_config of Qwen2-VL and Qwen2.5-VL.
func visionTower(c *config, m *spec.Model) {
	v := &config{}
	if json.Unmarshal(c.fields["vision_config"], &v.fields) != nil || len(v.fields) == 0 {
		c.warn("there is no vision_config: only the language model is read")
		return
	}
	h := v.count(maxWidth, "embed_dim", "hidden_size")
	merge, patch := v.count(maxWidth, "spatial_merge_size"), v.count(maxWidth, "patch_size")
	t := spec.Tower{Layers: v.count(maxLayers, "depth"), Hidden: h, FFN: v.count(maxWidth, "intermediate_size"), Heads: v.count(maxWidth, "num_heads"),
		GatedMLP: v.has("intermediate_size"), Tokens: patchesOfImage}
	if t.FFN == 0 {
		t.FFN = min(int(v.ratio("mlp_ratio", 4)*float64(h)), maxWidth)
	}
	merged := float64(merge) * float64(merge) * float64(h)
	projector := merged*(merged+float64(m.Hidden)) +
		float64(max(v.count(maxWidth, "in_chans", "in_channels"), 3))*float64(max(v.count(maxWidth, "temporal_patch_size"), 1))*float64(patch)*float64(patch)*float64(h)
	if v.err != nil || t.Layers == 0 || h == 0 || !(projector < maxProjector) {
		c.fail("vision_config: depth=%d, width=%d, spatial_merge_size=%d and patch_size=%d give no tower", t.Layers, h, merge, patch)
		return
	}
	t.Projector = int(projector)
	m.Tower = t
	c.warn("a sample has one image of %d patches", patchesOfImage)
}

// maxProjector bounds the parameters of a projector.
const maxProjector = 1 << 40

// whisper has an encoder of audio frames and a decoder of text. Its sample is as long as the mean of both.
func whisper(c *config, m *spec.Model) {
	encoder, decoder := encoderAndDecoder(c, m)
	frames, tokens := c.count(maxTokens, "max_source_positions"), c.count(maxTokens, "max_target_positions")
	h, f, mel := float64(m.Hidden), float64(m.FFN), float64(c.count(maxWidth, "num_mel_bins"))
	m.SeqLen = (frames + tokens) / 2
	extra(m, 3*mel*h+3*h*h+float64(frames+tokens)*h)                 // two convolutions, learned and stored positions
	extra(m, float64(encoder)*(8*h+f)+float64(decoder)*(13*h+f)+6*h) // biases, of all but keys, and norms; of the convolutions
}
