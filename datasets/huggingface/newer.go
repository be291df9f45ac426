package huggingface

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// newer are further architectures, from the configuration_*.py of transformers 4.57 and 5, and of the models' own
// repositories. Most have the fields and the layers of Llama.
func newer() map[string]arch {
	llama := arch{kind: spec.Decoder, gated: true}
	tied := arch{kind: spec.Decoder, gated: true, tied: true}
	plain := arch{kind: spec.Decoder} // an MLP of two matrices
	gemma4Arch := arch{kind: spec.Decoder, gated: true, tied: true, defaults: gemma4Defaults, adjust: gemma4}
	out := map[string]arch{
		"chatglm":       {kind: spec.Decoder, gated: true, adjust: chatGLM},
		"qwen":          {kind: spec.Decoder, gated: true, adjust: qwen},
		"dbrx":          {kind: spec.Decoder, gated: true, defaults: map[string]any{"vocab_size": 32000}, adjust: dbrx},
		"exaone4":       {kind: spec.Decoder, gated: true, window: patternWindows},
		"exaone_moe":    {kind: spec.Decoder, gated: true, window: patternWindows},
		"vaultgemma":    architectures["gemma2"],
		"youtu_llm":     {kind: spec.Decoder, gated: true, tied: true, adjust: latentAttention},
		"camembert":     architectures["roberta"],
		"qwen3_vl_text": architectures["qwen3"], "qwen3_vl_moe_text": architectures["qwen3_moe"],
		"qwen3_5_text": {kind: spec.Decoder, gated: true, adjust: qwen3Next}, "qwen3_5_moe_text": architectures["qwen3_next"],
		"glm4_moe_lite": deepSeekArch, "glm_moe_dsa": sparseDeepSeekArch, "deepseek_vl_v2": deepSeekArch,
		"ministral3":        architectures["ministral"],
		"hunyuan_v1_moe":    {kind: spec.Decoder, gated: true, tied: true, adjust: hunyuanExperts},
		"granitemoehybrid":  {kind: spec.Decoder, gated: true, defaults: graniteDefaults, adjust: graniteHybrid},
		"minicpm3":          {kind: spec.Decoder, gated: true, tied: true, defaults: map[string]any{"v_head_dim": 64}, adjust: latentAttention},
		"mamba":             {kind: spec.Decoder, tied: true, defaults: mambaDefaults, adjust: mamba},
		"jamba":             {kind: spec.Decoder, gated: true, defaults: jambaDefaults, adjust: jamba},
		"bamba":             {kind: spec.Decoder, gated: true, defaults: bambaDefaults, adjust: bamba},
		"falcon_mamba":      {kind: spec.Decoder, tied: true, defaults: mambaDefaults, adjust: mamba},
		"mllama_text_model": {kind: spec.Decoder, gated: true, adjust: mllama},
		"gemma4_text":       gemma4Arch, "gemma4_unified_text": gemma4Arch,
		"afmoe":               {kind: spec.Decoder, gated: true, defaults: map[string]any{"head_dim": 128, "num_dense_layers": 1, "sliding_window": 1024, "global_attn_every_n_layers": 4}, window: everyNth, adjust: gatedAttention},
		"glm4v":               {kind: spec.Decoder, gated: true, adjust: towerInside},
		"qwen3_omni_moe_text": architectures["qwen3_moe"], "qwen2_5_omni_text": architectures["qwen2"],
		"glm4v_text": architectures["glm4"], "glm4v_moe_text": architectures["glm4_moe"],
		"step3_text": {kind: spec.Decoder, gated: true, adjust: step3},
		"phi3_v":     {kind: spec.Decoder, gated: true, window: everyLayer, adjust: phi3Vision},
	}
	for _, name := range []string{"glm", "seed_oss", "minimax_m2", "dots1", "bailing_moe", "bailing_moe_v2", "deepseek", "baichuan", "internlm", "xverse", "orion", "helium", "mimo",
		"granitemoeshared", "hunyuan_v1_dense", "flex_olmo", "aquila", "yi", "exaone", "solar_open", "cwm"} {
		out[name] = llama
	}
	for _, name := range []string{"ernie4_5", "ernie4_5_moe", "minicpm", "bitnet"} {
		out[name] = tied
	}
	for _, name := range []string{"apertus", "arcee", "persimmon", "nanochat"} {
		out[name] = plain
	}
	return out
}

func init() {
	for _, more := range []map[string]arch{newer(), vision(), encoders(), recurrent(), diffusion()} {
		maps.Copy(architectures, more)
	}
}

// chatGLM has names of its own for groups of key/value heads and the vocabulary.
func chatGLM(c *config, m *spec.Model) {
	m.Vocab = c.count(maxVocab, "padded_vocab_size", "vocab_size")
	m.HeadDim = c.count(maxWidth, "kv_channels")
	if c.flag("multi_query_attention", false) {
		m.KVHeads = c.count(maxWidth, "multi_query_group_num")
	}
	m.TiedEmbeddings = c.flag("tie_word_embeddings", false)
}

// qwen, the first one, states the width of both input matrices of its MLP together.
func qwen(c *config, m *spec.Model) { m.FFN /= 2 }

// dbrx has the widths of attention and experts in objects.
func dbrx(c *config, m *spec.Model) {
	attention, experts := &config{}, &config{}
	if json.Unmarshal(c.fields["attn_config"], &attention.fields) != nil || json.Unmarshal(c.fields["ffn_config"], &experts.fields) != nil {
		c.fail("attn_config and ffn_config must be objects")
		return
	}
	m.KVHeads = attention.count(maxWidth, "kv_n_heads")
	m.FFN = experts.count(maxWidth, "ffn_hidden_size")
	m.Experts, m.ExpertFFN = experts.count(maxWidth, "moe_num_experts"), m.FFN
	m.ExpertsPerToken = experts.count(maxWidth, "moe_top_k")
	for _, part := range []*config{attention, experts} {
		if part.err != nil {
			c.fail("attn_config or ffn_config: %w", part.err)
		}
	}
}

// hunyuanExperts has switches for shared keys and values, and for the expert that all tokens take.
func hunyuanExperts(c *config, m *spec.Model) {
	if c.flag("use_cla", false) || c.flag("use_mla", false) {
		c.fail("use_cla and use_mla share or compress keys and values in a way that is not known")
	}
	if !c.flag("use_mixed_mlp_moe", true) {
		m.SharedExperts = 0
	}
}

var graniteDefaults = map[string]any{"mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_expand": 2, "shared_intermediate_size": 1024}

// graniteHybrid has a state-space mixer or attention in each layer, and an MLP that all tokens take, beside experts if
// there are any.
func graniteHybrid(c *config, m *spec.Model) {
	if types, ok := c.layerTypes("layer_types", m.Layers); ok {
		m.SSMLayers = types["mamba"]
	} else if types, ok := c.layerTypes("layers_block_type", m.Layers); ok {
		m.SSMLayers = types["mamba"]
	} else {
		c.fail("layer_types must be there")
	}
	mixers2(c, m)
	if m.Experts == 0 {
		m.FFN = c.count(maxWidth, "shared_intermediate_size")
	}
}

// mixers2 reads the widths of mixers of Mamba 2, where a layer has one.
func mixers2(c *config, m *spec.Model) {
	if m.SSMLayers == 0 {
		return
	}
	m.SSMHeads, m.SSMState, m.SSMGroups = c.count(maxWidth, "mamba_n_heads"), c.count(maxWidth, "mamba_d_state"), c.count(maxWidth, "mamba_n_groups")
	if m.SSMHeadDim = c.countOrAuto("mamba_d_head"); m.SSMHeadDim == 0 {
		m.SSMHeadDim = c.count(maxWidth, "mamba_expand") * m.Hidden / max(m.SSMHeads, 1)
	}
}

// gatedAttention has a gate of the output of attention, a matrix as large as that of the queries.
func gatedAttention(_ *config, m *spec.Model) {
	extra(m, float64(m.AttentionLayers())*float64(m.Hidden)*float64(m.Heads*m.Head()))
}

// everyNth is allBut for files with global_attn_every_n_layers.
func everyNth(c *config, layers int) int {
	return layers - layers/max(c.count(maxLayers, "global_attn_every_n_layers"), 1)
}

// step3 has one key and value for all heads, queries that are compressed first, and a list of the layers with experts
// (StepFun 2025, arXiv 2507.19427, section 3).
func step3(c *config, m *spec.Model) {
	m.KVHeads = c.count(maxWidth, "num_attention_groups")
	listed := strings.Split(c.word("moe_layers_enum"), ",")
	if m.Experts == 0 || len(listed) > m.Layers || listed[0] == "" || m.KVHeads == 0 {
		c.fail("moe_num_experts, num_attention_groups and moe_layers_enum must be there, with at most %d layers", m.Layers)
		return
	}
	m.DenseLayers = m.Layers - len(listed)
	queries, rank := float64(m.Heads*m.Head()), c.width("share_q_dim")
	if rank == 0 {
		rank = queries
	}
	extra(m, float64(m.Layers)*(float64(m.Hidden)*(rank-queries)+rank*queries))
}

// mllama has eight tokens of images more in its input embedding. Its layers with cross attention are as large as the
// others.
func mllama(_ *config, m *spec.Model) { extra(m, 8*float64(m.Hidden)) }

// patternWindows reads the layers with a window from a pattern such as LLLG: local layers and a global one.
func patternWindows(c *config, layers int) int {
	if pattern := c.word("sliding_window_pattern"); pattern != "" {
		local := 0
		for i := range layers {
			if p := pattern[i%len(pattern)]; p == 'L' {
				local++
			}
		}
		return local
	}
	if n := c.count(maxLayers, "sliding_window_pattern"); n > 0 {
		return layers - layers/n
	}
	return 0
}
