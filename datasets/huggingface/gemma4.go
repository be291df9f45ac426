package huggingface

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var gemma4Defaults = map[string]any{"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
	"global_head_dim": 512, "vocab_size": 262144, "sliding_window": 512, "max_position_embeddings": 131072}

// gemma4 has wider heads, and keys that are the values too, in the layers that see all tokens, and an MLP beside the
// experts (Google, Gemma 4, 2026). Its small forms have embeddings of each layer.
func gemma4(c *config, m *spec.Model) {
	embeds := 256 // of a file that does not say
	if _, said := c.fields["hidden_size_per_layer_input"]; said {
		embeds = c.count(maxWidth, "hidden_size_per_layer_input")
	}
	if embeds > 0 || c.count(maxLayers, "num_kv_shared_layers") > 0 || c.flag("use_double_wide_mlp", false) {
		c.fail("layers with embeddings of their own, or with keys and values of others, cannot be described: hidden_size_per_layer_input=%d, num_kv_shared_layers=%d",
			embeds, c.count(maxLayers, "num_kv_shared_layers"))
		return
	}
	if !c.flag("enable_moe_block", false) {
		m.Experts, m.ExpertsPerToken, m.ExpertFFN = 0, 0, 0
	}
	h, more := float64(m.Hidden), 0.0
	if m.Experts > 0 && m.ExpertFFN > 0 {
		m.SharedExperts = max(int(math.Round(float64(m.FFN)/float64(m.ExpertFFN))), 1)
		more = float64(m.Layers) * 3 * h * float64(m.FFN-m.SharedExperts*m.ExpertFFN)
	}
	local := m.Layers - m.Layers/6
	if types, ok := c.layerTypes("layer_types", m.Layers); ok {
		local = types["sliding_attention"]
	}
	kv, matrices := m.KVHeads, 2
	if c.flag("attention_k_eq_v", false) {
		matrices = 1
		if n := c.count(maxWidth, "num_global_key_value_heads"); n > 0 {
			kv = n
		}
	}
	wide, global := c.count(maxWidth, "global_head_dim"), m.Layers-local
	weights := float64(local)*m.AttentionParams() + float64(global)*h*float64(wide)*float64(2*m.Heads+matrices*kv)
	c.meanHeads(m, local, wide)
	extra(m, more+weights-float64(m.Layers)*m.AttentionParams())
}

// meanHeads describes heads that are m.HeadDim wide in a number of layers with a window, and wide in the others, by a
// mean width of all and a number of layers with a window that give the same scores:
//
//	wide·global = d·(layers-n)    without a window
//	narrow·local = d·n            with one
//
// n is rounded to a layer, and d to a multiple of 8.
func (c *config) meanHeads(m *spec.Model, local, wide int) {
	layers, narrow := float64(m.Layers), float64(m.HeadDim)
	inside, outside := narrow*float64(local), float64(wide)*(layers-float64(local))
	if m.Layers == 0 || narrow == 0 || inside+outside == 0 {
		return // check says what is missing
	}
	n := min(math.Round(layers*inside/(inside+outside)), layers-1)
	m.HeadDim = max(int(math.Round(outside/(layers-n)/8)), 1) * 8
	if m.Window = c.count(maxTokens, "sliding_window"); m.Window > 0 {
		m.WindowLayers = int(n)
	}
	c.fields["sliding_window"], c.fields["layer_types"] = nil, nil // they are read
	c.warn("heads are %g wide in the %d layers with a window and %d wide in %d others: counted as %d wide in all, with a window in %d",
		narrow, local, wide, m.Layers-local, m.HeadDim, m.WindowLayers)
}
