package huggingface

import (
	"encoding/json"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// mamba1Head is the width of the heads by which a mixer of Mamba 1, which has none, is counted as one of Mamba 2.
const mamba1Head = 64

var (
	mambaDefaults = map[string]any{"num_attention_heads": 1, "state_size": 16, "conv_kernel": 4, "expand": 2}
	jambaDefaults = map[string]any{"vocab_size": 65536, "attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "num_experts": 16, "num_experts_per_tok": 2,
		"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "num_key_value_heads": 8}
	bambaDefaults = map[string]any{"vocab_size": 128000, "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_expand": 2, "num_key_value_heads": 8}
)

// mamba1 counts layers with a mixer of Mamba 1 (Gu and Dao 2023, arXiv 2312.00752): two matrices in and one out, a
// convolution, the projections of the step, B and C, and A and D. The keys are those of the state, the convolution and the
// rank of the step.
func mamba1(c *config, m *spec.Model, layers, inner int, keys [3]string) {
	state, conv, rank := c.count(maxWidth, keys[0]), c.count(maxWidth, keys[1]), c.countOrAuto(keys[2])
	if inner < mamba1Head || inner%mamba1Head != 0 || state == 0 {
		c.fail("a mixer of %d channels and a state of %d is not known", inner, state)
		return
	}
	if rank == 0 {
		rank = (m.Hidden + 15) / 16
	}
	m.SSMLayers, m.SSMHeads, m.SSMHeadDim, m.SSMState, m.SSMGroups = layers, inner/mamba1Head, mamba1Head, state, 1
	d, n := float64(inner), float64(state)
	mixer := 3*d*float64(m.Hidden) + d*(float64(conv)+2*float64(rank)+3*n+3) // biases of convolution and step too
	extra(m, float64(layers)*(mixer-m.SSMParams()))
	c.warn("mixers of Mamba 1 are counted as those of Mamba 2, which are quicker")
}

// countOrAuto reads a width, 0 for "auto".
func (c *config) countOrAuto(key string) int {
	if string(c.value(key)) == `"auto"` {
		return 0
	}
	return c.count(maxWidth, key)
}

// mamba has a mixer in every layer, and no MLP.
func mamba(c *config, m *spec.Model) {
	m.Heads, m.KVHeads, m.HeadDim, m.FFN = 0, 0, 0, 0
	inner := c.count(maxWidth, "intermediate_size")
	if inner == 0 {
		inner = min(c.count(maxWidth, "expand")*m.Hidden, maxWidth)
	}
	mamba1(c, m, m.Layers, inner, [3]string{"state_size", "conv_kernel", "time_step_rank"})
}

// jamba has attention in every eighth layer and a mixer of Mamba 1 in the others, and experts in every second layer
// (Lieber et al. 2024, arXiv 2403.19887).
func jamba(c *config, m *spec.Model) {
	every, offset := c.count(maxLayers, "attn_layer_period"), c.count(maxLayers, "attn_layer_offset")
	experts := c.count(maxLayers, "expert_layer_period")
	if every == 0 || experts == 0 {
		c.fail("attn_layer_period=%d and expert_layer_period=%d must be positive", every, experts)
		return
	}
	attention := 0
	for i := range m.Layers {
		if i%every == offset%every {
			attention++
		}
	}
	if m.Experts == 1 {
		m.Experts, m.ExpertsPerToken, m.ExpertFFN = 0, 0, 0
	} else {
		m.ExpertFFN, m.MoEEvery = m.FFN, experts
		m.DenseLayers = m.Layers - m.Layers/experts
	}
	mamba1(c, m, m.Layers-attention, min(c.count(maxWidth, "mamba_expand")*m.Hidden, maxWidth), [3]string{"mamba_d_state", "mamba_d_conv", "mamba_dt_rank"})
}

// bamba has attention in the layers of a list, a state-space mixer in the others, and an MLP in all.
func bamba(c *config, m *spec.Model) {
	var attention []int
	if raw := c.value("attn_layer_indices"); raw != nil && (json.Unmarshal(raw, &attention) != nil || len(attention) > m.Layers) {
		c.fail("attn_layer_indices=%s is not a list of layers", truncate(raw))
		return
	}
	m.SSMLayers = m.Layers - len(attention)
	mixers2(c, m)
}
