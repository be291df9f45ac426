package huggingface

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// cases are config.json files of released models, cut to the fields that
// determine the shape, with the published parameters in billions: totals of the
// safetensors files or of the paper. Multi-token prediction modules are not
// counted.
var cases = []struct {
	name, json    string
	total, active float64 // 1e9; active 0 = dense; total 0 = the published files hold the tied head twice
	catalog       string  // the same network there, "" = none
}{
	{"Llama-3.1-8B", `{"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,"num_hidden_layers":32,"vocab_size":128256,"tie_word_embeddings":false,"max_position_embeddings":131072,"rope_scaling":{"rope_type":"llama3","factor":8.0,"original_max_position_embeddings":8192}}`, 8.030, 0, "Llama3-8B"},
	{"Llama-3.1-405B", `{"model_type":"llama","hidden_size":16384,"intermediate_size":53248,"num_attention_heads":128,"num_key_value_heads":8,"num_hidden_layers":126,"vocab_size":128256,"tie_word_embeddings":false,"max_position_embeddings":131072}`, 405.85, 0, "Llama3.1-405B"},
	{"Llama-2-7b", `{"model_type":"llama","hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,"num_hidden_layers":32,"vocab_size":32000,"max_position_embeddings":4096}`, 6.738, 0, "Llama2-7B"},
	{"Llama-3.2-1B", `{"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":64,"num_hidden_layers":16,"vocab_size":128256,"tie_word_embeddings":true}`, 1.236, 0, "Llama3.2-1B"},
	{"Mistral-7B", `{"model_type":"mistral","hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,"num_hidden_layers":32,"vocab_size":32000}`, 7.242, 0, "Mistral-7B"},
	{"Mixtral-8x7B", `{"model_type":"mixtral","hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_key_value_heads":8,"num_hidden_layers":32,"vocab_size":32000,"num_local_experts":8,"num_experts_per_tok":2}`, 46.703, 12.88, "Mixtral-8x7B"},
	{"Qwen2.5-7B", `{"model_type":"qwen2","hidden_size":3584,"intermediate_size":18944,"num_attention_heads":28,"num_key_value_heads":4,"num_hidden_layers":28,"vocab_size":152064,"tie_word_embeddings":false}`, 7.616, 0, "Qwen2.5-7B"},
	{"Qwen1.5-MoE-A2.7B", `{"model_type":"qwen2_moe","hidden_size":2048,"intermediate_size":5632,"num_attention_heads":16,"num_key_value_heads":16,"num_hidden_layers":24,"vocab_size":151936,"num_experts":60,"num_experts_per_tok":4,"moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"decoder_sparse_step":1}`, 14.316, 2.69, ""},
	{"Qwen3-8B", `{"model_type":"qwen3","hidden_size":4096,"intermediate_size":12288,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"num_hidden_layers":36,"vocab_size":151936,"tie_word_embeddings":false}`, 8.191, 0, "Qwen3-8B"},
	{"Qwen3-30B-A3B", `{"model_type":"qwen3_moe","hidden_size":2048,"intermediate_size":6144,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"num_hidden_layers":48,"vocab_size":151936,"num_experts":128,"num_experts_per_tok":8,"moe_intermediate_size":768,"mlp_only_layers":[]}`, 30.532, 3.35, "Qwen3-30B-A3B"},
	{"gemma-2b", `{"model_type":"gemma","hidden_size":2048,"intermediate_size":16384,"num_attention_heads":8,"num_key_value_heads":1,"num_hidden_layers":18,"vocab_size":256000}`, 2.506, 0, ""},
	{"gemma-2-9b", `{"model_type":"gemma2","hidden_size":3584,"intermediate_size":14336,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":256,"num_hidden_layers":42,"vocab_size":256000}`, 9.242, 0, ""},
	{"gemma-3-4b", `{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34},"vision_config":{"hidden_size":1152}}`, 3.880, 0, ""},
	{"Phi-3-mini", `{"model_type":"phi3","hidden_size":3072,"intermediate_size":8192,"num_attention_heads":32,"num_key_value_heads":32,"num_hidden_layers":32,"vocab_size":32064,"max_position_embeddings":131072,"original_max_position_embeddings":4096}`, 3.821, 0, ""},
	{"phi-1.5", `{"model_type":"phi","hidden_size":2048,"intermediate_size":8192,"num_attention_heads":32,"num_hidden_layers":24,"vocab_size":51200,"max_position_embeddings":2048}`, 1.418, 0, "phi-1.5"},
	{"OLMo-2-7B", `{"model_type":"olmo2","hidden_size":4096,"intermediate_size":11008,"num_attention_heads":32,"num_hidden_layers":32,"vocab_size":100352}`, 7.299, 0, ""},
	{"OLMoE-1B-7B", `{"model_type":"olmoe","hidden_size":2048,"intermediate_size":1024,"num_attention_heads":16,"num_key_value_heads":16,"num_hidden_layers":16,"vocab_size":50304,"num_experts":64,"num_experts_per_tok":8}`, 6.919, 1.28, ""},
	{"gpt-oss-20b", `{"model_type":"gpt_oss","hidden_size":2880,"intermediate_size":2880,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"num_hidden_layers":24,"vocab_size":201088,"num_local_experts":32,"num_experts_per_tok":4}`, 20.9, 4.19, "GPT-OSS-20B"},
	{"DeepSeek-V2-Lite", `{"model_type":"deepseek_v2","hidden_size":2048,"intermediate_size":10944,"moe_intermediate_size":1408,"num_attention_heads":16,"num_key_value_heads":16,"num_hidden_layers":27,"vocab_size":102400,"n_routed_experts":64,"n_shared_experts":2,"num_experts_per_tok":6,"first_k_dense_replace":1,"moe_layer_freq":1,"q_lora_rank":null,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128}`, 15.706, 2.66, ""},
	{"DeepSeek-V3", `{"model_type":"deepseek_v3","hidden_size":7168,"intermediate_size":18432,"moe_intermediate_size":2048,"num_attention_heads":128,"num_key_value_heads":128,"num_hidden_layers":61,"num_nextn_predict_layers":1,"vocab_size":129280,"n_routed_experts":256,"n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":3,"q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"rope_scaling":{"original_max_position_embeddings":4096}}`, 671.0, 37.55, "DeepSeekV3"},
	{"gpt2", `{"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"n_positions":1024,"n_ctx":1024,"vocab_size":50257,"n_inner":null}`, 0.12444, 0, "GPT2-small"},
	{"gpt2-xl", `{"model_type":"gpt2","n_embd":1600,"n_layer":48,"n_head":25,"n_positions":1024,"vocab_size":50257}`, 1.5576, 0, "GPT2-XL"},
	{"starcoderbase", `{"model_type":"gpt_bigcode","n_embd":6144,"n_layer":40,"n_head":48,"n_inner":24576,"n_positions":8192,"vocab_size":49152,"multi_query":true}`, 15.517, 0, ""},
	{"gpt-neox-20b", `{"model_type":"gpt_neox","hidden_size":6144,"intermediate_size":24576,"num_attention_heads":64,"num_hidden_layers":44,"vocab_size":50432,"max_position_embeddings":2048}`, 20.555, 0, "GPT-NeoX-20B"},
	{"gpt-j-6b", `{"model_type":"gptj","n_embd":4096,"n_layer":28,"n_head":16,"n_positions":2048,"vocab_size":50400,"tie_word_embeddings":false}`, 6.0509, 0, "GPT-J-6B"},
	{"opt-1.3b", `{"model_type":"opt","hidden_size":2048,"ffn_dim":8192,"num_attention_heads":32,"num_hidden_layers":24,"vocab_size":50272,"max_position_embeddings":2048,"word_embed_proj_dim":2048}`, 1.3158, 0, "OPT-1.3B"},
	{"bloom-7b1", `{"model_type":"bloom","n_embed":4096,"n_layer":30,"num_attention_heads":32,"vocab_size":250880}`, 7.069, 0, "BLOOM-7B"},
	{"falcon-7b", `{"model_type":"falcon","hidden_size":4544,"num_attention_heads":71,"num_hidden_layers":32,"multi_query":true,"new_decoder_architecture":false,"vocab_size":65024}`, 6.9217, 0, "Falcon-7B"},
	{"falcon-40b", `{"model_type":"falcon","hidden_size":8192,"num_attention_heads":128,"num_kv_heads":8,"num_hidden_layers":60,"new_decoder_architecture":true,"vocab_size":65024}`, 0, 0, "Falcon-40B"},
	{"mpt-7b", `{"model_type":"mpt","d_model":4096,"n_layers":32,"n_heads":32,"expansion_ratio":4,"max_seq_len":2048,"vocab_size":50432}`, 6.649, 0, "MPT-7b"},
	{"bert-base", `{"model_type":"bert","hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"vocab_size":30522,"max_position_embeddings":512}`, 0.10948, 0, "BERT-base"},
	{"roberta-large", `{"model_type":"roberta","hidden_size":1024,"intermediate_size":4096,"num_attention_heads":16,"num_hidden_layers":24,"vocab_size":50265,"max_position_embeddings":514,"type_vocab_size":1}`, 0.35536, 0, "RoBERTa-large"},
	{"t5-3b", `{"model_type":"t5","d_model":1024,"d_ff":16384,"d_kv":128,"num_heads":32,"num_layers":24,"vocab_size":32128}`, 2.8516, 0, "T5-3B"},
	{"bart-large", `{"model_type":"bart","d_model":1024,"encoder_layers":12,"decoder_layers":12,"encoder_attention_heads":16,"encoder_ffn_dim":4096,"vocab_size":50265,"max_position_embeddings":1024}`, 0.40629, 0, ""},
	{"Gemma2-2B", `{"model_type":"gemma2","head_dim":256,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,"num_attention_heads":8,"num_key_value_heads":4,"sliding_window":4096,"max_position_embeddings":8192,"vocab_size":256000}`, 2.614, 0, "Gemma2-2B"},
	{"Gemma3-1B", `{"model_type":"gemma3_text","head_dim":256,"hidden_size":1152,"intermediate_size":6912,"num_hidden_layers":26,"num_attention_heads":4,"num_key_value_heads":1,"sliding_window":512,"sliding_window_pattern":6,"max_position_embeddings":32768,"vocab_size":262144}`, 0.9999, 0, "Gemma3-1B"},
	{"OLMo2-13B", `{"model_type":"olmo2","hidden_size":5120,"intermediate_size":13824,"num_hidden_layers":40,"num_attention_heads":40,"num_key_value_heads":40,"vocab_size":100352,"max_position_embeddings":4096,"tie_word_embeddings":false}`, 13.72, 0, "OLMo2-13B"},
	{"Qwen2.5-32B", `{"model_type":"qwen2","hidden_size":5120,"intermediate_size":27648,"num_hidden_layers":64,"num_attention_heads":40,"num_key_value_heads":8,"vocab_size":152064,"max_position_embeddings":32768,"use_sliding_window":false,"max_window_layers":64,"tie_word_embeddings":false}`, 32.76, 0, "Qwen2.5-32B"},
	{"DeepSeek-V2", `{"model_type":"deepseek_v2","moe_layer_freq":1,"tie_word_embeddings":false,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"kv_lora_rank":512,"first_k_dense_replace":1,"hidden_size":5120,"intermediate_size":12288,"moe_intermediate_size":1536,"n_routed_experts":160,"n_shared_experts":2,"num_experts_per_tok":6,"num_attention_heads":128,"num_key_value_heads":128,"num_hidden_layers":60,"q_lora_rank":1536,"vocab_size":102400,"max_position_embeddings":163840}`, 235.7, 21.376, "DeepSeek-V2"},
	{"DeepSeek-V3.2", `{"first_k_dense_replace":3,"hidden_size":7168,"index_head_dim":128,"index_n_heads":64,"index_topk":2048,"intermediate_size":18432,"kv_lora_rank":512,"max_position_embeddings":163840,"model_type":"deepseek_v32","moe_intermediate_size":2048,"moe_layer_freq":1,"n_routed_experts":256,"n_shared_experts":1,"num_attention_heads":128,"num_experts_per_tok":8,"num_hidden_layers":61,"num_key_value_heads":128,"num_nextn_predict_layers":1,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"rope_scaling":{"beta_slow":1,"factor":40,"mscale":1.0,"mscale_all_dim":1.0,"original_max_position_embeddings":4096,"type":"yarn"},"tie_word_embeddings":false,"v_head_dim":128,"vocab_size":129280}`, 671.9, 38.404, "DeepSeek-V3.2"},
	{"GLM-4.5-Air", `{"model_type":"glm4_moe","first_k_dense_replace":1,"head_dim":128,"hidden_size":4096,"intermediate_size":10944,"max_position_embeddings":131072,"moe_intermediate_size":1408,"n_routed_experts":128,"n_shared_experts":1,"num_attention_heads":96,"num_experts_per_tok":8,"num_hidden_layers":46,"num_key_value_heads":8,"num_nextn_predict_layers":1,"tie_word_embeddings":false,"vocab_size":151552}`, 106.9, 13.424, "GLM-4.5-Air"},
	{"Llama4-Scout", `{"model_type":"llama4","text_config":{"attention_chunk_size":8192,"head_dim":128,"hidden_size":5120,"interleave_moe_layer_step":1,"intermediate_size":8192,"intermediate_size_mlp":16384,"max_position_embeddings":10485760,"model_type":"llama4_text","num_attention_heads":40,"num_experts_per_tok":1,"num_hidden_layers":48,"num_key_value_heads":8,"num_local_experts":16,"rope_scaling":{"factor":16.0,"high_freq_factor":1.0,"low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},"vocab_size":202048}}`, 107.8, 17.173, "Llama4-Scout"},
	{"Llama4-Maverick", `{"model_type":"llama4","text_config":{"attention_chunk_size":8192,"head_dim":128,"hidden_size":5120,"interleave_moe_layer_step":2,"intermediate_size":8192,"intermediate_size_mlp":16384,"max_position_embeddings":1048576,"model_type":"llama4_text","num_attention_heads":40,"num_experts_per_tok":1,"num_hidden_layers":48,"num_key_value_heads":8,"num_local_experts":128,"rope_scaling":null,"vocab_size":202048}}`, 400.7, 17.185, "Llama4-Maverick"},
	{"MiniMax-Text-01", `{"model_type":"minimax_text_01","head_dim":128,"hidden_size":6144,"intermediate_size":9216,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"num_local_experts":32,"num_experts_per_tok":2,"attn_type_list":[0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,1],"max_position_embeddings":10240000,"vocab_size":200064,"shared_intermediate_size":0,"tie_word_embeddings":false}`, 456.1, 48.4, "MiniMax-Text-01"},
	{"Nemotron-3-Super", `{"head_dim":128,"hidden_size":4096,"hybrid_override_pattern":"MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME","intermediate_size":2688,"mamba_head_dim":64,"mamba_num_heads":128,"max_position_embeddings":262144,"model_type":"nemotron_h","moe_intermediate_size":2688,"moe_latent_size":1024,"moe_shared_expert_intermediate_size":5376,"n_groups":8,"n_routed_experts":512,"n_shared_experts":1,"num_attention_heads":32,"num_experts_per_tok":22,"num_hidden_layers":88,"num_key_value_heads":2,"sliding_window":null,"ssm_state_size":128,"tie_word_embeddings":false,"vocab_size":131072}`, 120.7, 12.77, "Nemotron-3-Super"},
	{"Nemotron-3-Ultra", `{"head_dim":128,"hidden_size":8192,"hybrid_override_pattern":"MEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME","intermediate_size":5120,"mamba_head_dim":64,"mamba_num_heads":256,"max_position_embeddings":262144,"model_type":"nemotron_h","moe_intermediate_size":5120,"moe_latent_size":2048,"moe_shared_expert_intermediate_size":10240,"n_groups":8,"n_routed_experts":512,"n_shared_experts":1,"num_attention_heads":64,"num_experts_per_tok":22,"num_hidden_layers":108,"num_key_value_heads":2,"sliding_window":null,"ssm_state_size":128,"tie_word_embeddings":false,"vocab_size":131072}`, 550, 0, "Nemotron-3-Ultra"},
	{"Qwen2.5-VL-7B", `{"model_type":"qwen2_5_vl","hidden_size":3584,"intermediate_size":18944,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"vocab_size":152064,"max_position_embeddings":32768,"use_sliding_window":false,"max_window_layers":28,"tie_word_embeddings":false,"vision_config":{"depth":32,"hidden_size":1280,"intermediate_size":3420,"out_hidden_size":3584,"num_heads":16,"in_chans":3,"patch_size":14,"spatial_merge_size":2,"temporal_patch_size":2,"window_size":112}}`, 8.292, 0, "Qwen2.5-VL-7B"},
	{"Qwen3-Next-80B-A3B", `{"model_type":"qwen3_next","decoder_sparse_step":1,"full_attention_interval":4,"head_dim":256,"hidden_size":2048,"intermediate_size":5120,"linear_key_head_dim":128,"linear_num_key_heads":16,"linear_num_value_heads":32,"linear_value_head_dim":128,"max_position_embeddings":262144,"mlp_only_layers":[],"moe_intermediate_size":512,"num_attention_heads":16,"num_experts":512,"num_experts_per_tok":10,"num_hidden_layers":48,"num_key_value_heads":2,"shared_expert_intermediate_size":512,"tie_word_embeddings":false,"vocab_size":151936}`, 79.67, 3.875, "Qwen3-Next-80B-A3B"},
	{"Whisper-large-v3", `{"model_type":"whisper","d_model":1280,"encoder_layers":32,"decoder_layers":32,"encoder_attention_heads":20,"decoder_attention_heads":20,"encoder_ffn_dim":5120,"decoder_ffn_dim":5120,"num_mel_bins":128,"max_source_positions":1500,"max_target_positions":448,"vocab_size":51866}`, 1.543, 0, "Whisper-large-v3"},
	{"Nemotron-H-8B", `{"model_type":"nemotron_h","hidden_size":4096,"intermediate_size":21504,"num_attention_heads":32,"num_key_value_heads":8,"attention_head_dim":128,"num_hidden_layers":52,"vocab_size":131072,"hybrid_override_pattern":"M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"}`, 8.1, 0, "Nemotron-H-8B"},
	{"mamba2-2.7b-hf", `{"model_type":"mamba2","hidden_size":2560,"num_hidden_layers":64,"num_heads":80,"head_dim":64,"state_size":128,"n_groups":1,"vocab_size":50288,"tie_word_embeddings":true}`, 2.7026, 0, "Mamba2-2.7B"},
	{"FLUX.1-dev", `{"_class_name":"FluxTransformer2DModel","num_layers":19,"num_single_layers":38,"attention_head_dim":128,"num_attention_heads":24,"joint_attention_dim":4096,"in_channels":64,"pooled_projection_dim":768}`, 11.901, 0, "Flux.1-dev"},
	{"vit-base", `{"model_type":"vit","hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"image_size":224,"patch_size":16,"num_channels":3,"num_labels":1000}`, 0.08657, 0, "ViT-B/16"},
}

// The parameters counted from the shape are the published ones, within 1 %.
func TestReadCounts(t *testing.T) {
	for _, tc := range cases {
		m, _, err := Read(strings.NewReader(tc.json))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		near := func(what string, got, want float64) {
			if want > 0 && math.Abs(got/want-1) > 0.01 {
				t.Errorf("%s: %s %.4f B, published %.4f B: off by %+.1f %%", tc.name, what, got, want, 100*(got/want-1))
			}
		}
		near("parameters", m.Params()/1e9, tc.total)
		near("active parameters", m.ActiveParams()/1e9, tc.active)
	}
}

// A config.json and the catalog give the same network the same shape.
func TestReadAgreesWithCatalog(t *testing.T) {
	n := 0
	for _, tc := range cases {
		if tc.catalog == "" {
			continue
		}
		m, _, err := Read(strings.NewReader(tc.json))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		want, err := catalog.Model(tc.catalog)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if tc.catalog == "Nemotron-3-Super" || tc.catalog == "Nemotron-3-Ultra" {
			want.MTPLayers = 0 // two passes of one module, which its config.json does not state
		}
		if got, want := shapeOf(m), shapeOf(want); got != want {
			t.Errorf("%s: %+v, catalog %s: %+v", tc.name, got, tc.catalog, want)
		}
	}
	if n < 20 {
		t.Errorf("%d networks compared", n)
	}
}

// TestReadAhead reads the modules for multi-token prediction.
func TestReadAhead(t *testing.T) {
	for text, want := range map[string]int{`,"num_nextn_predict_layers":1`: 1, `,"num_nextn_predict_layers":null`: 0, `,"mtp_num_layers":2`: 2,
		`,"mtp_num_hidden_layers":3`: 3, "": 0} {
		m, _, err := Read(strings.NewReader(`{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":8,"vocab_size":9` + text + "}"))
		if err != nil || m.MTPLayers != want {
			t.Errorf("%s: %d modules, %v, want %d", text, m.MTPLayers, err, want)
		}
	}
}

// TestReadNodeLimit reads the limit on the groups of experts of a token, which DeepSeek-V2 Lite and Kimi K2 do not have.
func TestReadNodeLimit(t *testing.T) {
	for text, want := range map[string]int{`"n_group":8,"topk_group":4`: 4, `"n_group":8,"topk_group":3,"topk_method":"group_limited_greedy"`: 3,
		`"n_group":1,"topk_group":1`: 0, `"n_group":8,"topk_group":8`: 0, `"n_group":8,"topk_group":4,"topk_method":"greedy"`: 0, `"n_group":null,"topk_group":null`: 0} {
		m, _, err := Read(strings.NewReader(`{"model_type":"deepseek_v3","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":8,"vocab_size":9,
			"n_routed_experts":64,"num_experts_per_tok":8,"moe_intermediate_size":32,"first_k_dense_replace":1,"intermediate_size":64,"kv_lora_rank":8,"qk_nope_head_dim":8,"qk_rope_head_dim":4,"v_head_dim":8,` + text + "}"))
		if err != nil || m.NodeLimit != want {
			t.Errorf("%s: %d nodes, %v, want %d", text, m.NodeLimit, err, want)
		}
	}
}

// shapeOf returns the fields that determine the work per token, with defaults
// filled in. The vocabulary is left out: training stacks pad it differently.
func shapeOf(m spec.Model) spec.Model {
	s := spec.Model{Kind: m.Kind, Layers: m.Layers, Hidden: m.Hidden, Heads: m.Heads, KVHeads: m.KV(), HeadDim: m.Head(),
		GatedMLP: m.GatedMLP, TiedEmbeddings: m.TiedEmbeddings && m.Kind != spec.Vision,
		Window: m.Window, WindowLayers: m.WindowLayers, SSMLayers: m.SSMLayers, SSMHeads: m.SSMHeads, SSMHeadDim: m.SSMHeadDim, SSMState: m.SSMState,
		SSMGroups: m.SSMGroups, MLPLayers: m.MLPLayers, ExpertHidden: m.ExpertHidden, Tower: m.Tower, QRank: m.QRank, KVRank: m.KVRank,
		Experts: m.Experts, ExpertsPerToken: m.ExpertsPerToken, ExpertFFN: m.ExpertFFN, SharedExperts: m.SharedExperts, DenseLayers: m.DenseLayers, MoEEvery: m.MoEEvery, MTPLayers: m.MTPLayers}
	if m.MoELayers() < m.Layers { // with experts in every layer, there is no dense MLP
		s.FFN = m.FFN
	}
	return s
}

func TestReadSequence(t *testing.T) {
	for _, tc := range []struct {
		json string
		want int
		warn string
	}{
		{`"max_position_embeddings":131072,"rope_scaling":{"original_max_position_embeddings":4096}`, 4096, ""},
		{`"max_position_embeddings":131072,"rope_scaling":null`, 8192, "assumed: 8192, not the 131072"},
		{`"max_position_embeddings":2048`, 2048, ""},
		{`"rope_scaling":{"type":"linear"}`, 0, ""},
	} {
		m, warnings, err := Read(strings.NewReader(`{"model_type":"llama","_name_or_path":"org/net-7b","hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,"vocab_size":9,` + tc.json + `}`))
		if err != nil {
			t.Errorf("%s: %v", tc.json, err)
			continue
		}
		if m.SeqLen != tc.want || m.Name != "net-7b" {
			t.Errorf("%s: %d tokens, name %s", tc.json, m.SeqLen, m.Name)
		}
		if text := errors.Join(warnings...); (text != nil) != (tc.warn != "") || text != nil && !strings.Contains(text.Error(), tc.warn) {
			t.Errorf("%s: warnings %v, want %q", tc.json, text, tc.warn)
		}
	}
}

// A pattern of windows in one file does not change those of files without it.
func TestReadWindowsTwice(t *testing.T) {
	layers := func(pattern string) int {
		m, _, err := Read(strings.NewReader(`{"model_type":"gemma3_text","hidden_size":1152,"num_hidden_layers":12,"intermediate_size":64` + pattern + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return m.WindowLayers
	}
	for range 2 {
		if got := layers(""); got != 10 {
			t.Errorf("%d layers with a window, want 10", got)
		}
		if got := layers(`,"sliding_window_pattern":2`); got != 6 {
			t.Errorf("%d layers with a window of every second, want 6", got)
		}
	}
}

// With a step, the layers with experts and without alternate.
func TestReadEveryNth(t *testing.T) {
	for _, step := range []string{"decoder_sparse_step", "interleave_moe_layer_step"} {
		m, warnings, err := Read(strings.NewReader(`{"model_type":"qwen3_moe","hidden_size":64,"num_hidden_layers":7,"num_attention_heads":4,"vocab_size":100,"intermediate_size":64,"` + step + `":2}`))
		if err != nil || len(warnings) > 0 || m.MoEEvery != 2 || m.DenseLayers != 4 || m.MoELayers() != 3 {
			t.Errorf("%s: %d of %d layers without experts, every %d with; %v, %v", step, m.DenseLayers, m.Layers, m.MoEEvery, warnings, err)
		}
	}
	m, _, err := Read(strings.NewReader(`{"model_type":"nemotron_h","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":9,"hybrid_override_pattern":"M-*E","n_routed_experts":8,"num_experts_per_tok":2,"moe_layer_freq":2}`))
	if err != nil || m.MoEEvery != 0 || m.DenseLayers != 1 || m.MoELayers() != 1 {
		t.Errorf("a pattern: %+v, %v", m, err)
	}
}

func TestReadWarns(t *testing.T) {
	for _, tc := range []struct{ json, want string }{
		{`{"model_type":"newnet","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,"hidden_act":"silu"}`, `"newnet" is not known: read as a decoder`},
		{`{"model_type":"qwen3_moe","hidden_size":64,"num_hidden_layers":6,"num_attention_heads":4,"vocab_size":100,"mlp_only_layers":[0,2,4],"intermediate_size":64}`, "the 3 layers without experts are taken as the first ones"},
		{`{"model_type":"qwen2_moe","hidden_size":64,"num_hidden_layers":6,"num_attention_heads":4,"vocab_size":100,"moe_intermediate_size":30,"shared_expert_intermediate_size":64}`, "width 64 is taken as 2 of width 30"},
		{cases[12].json, "only the language model of gemma3 is read"},
		{`{"model_type":"t5","d_model":64,"d_ff":64,"num_heads":4,"num_layers":4,"num_decoder_layers":2,"vocab_size":100}`, "4 encoder and 2 decoder layers"},
	} {
		_, warnings, err := Read(strings.NewReader(tc.json))
		if text := errors.Join(warnings...); err != nil || text == nil || !strings.Contains(text.Error(), tc.want) {
			t.Errorf("%s: %v, %v, want %q", tc.json, text, err, tc.want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	llama := func(fields string) string {
		return `{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"vocab_size":32000,` + fields + `}`
	}
	for _, tc := range []struct{ json, want string }{
		{``, "EOF"},
		{`null`, "it is empty"},
		{`{}`, "it is empty"},
		{`[1]`, "cannot unmarshal array"},
		{`{"model_type":"llama"} 7`, "text after the object"},
		{`{"model_type":"llama","vocab_size":5}`, "layers=0, hidden size=0 and heads=0 must be there"},
		{`{"hidden_size":5}`, "it has no model_type, such as llama"},
		{`{"model_type":"reformer","hidden_size":64,"num_hidden_layers":2}`, `model_type "reformer" is not known, and it lacks the usual`},
		{`{"_class_name":"WanModel","num_layers":40}`, `_class_name "WanModel" is not known, and it lacks the usual num_hidden_layers, hidden_size and num_attention_heads; it is none of the`},
		{`{"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"mamba_d_state":4}`, "the architecture without a model_type is not known, and its mamba_d_state means layers without attention"},
		{`{"model_type":"gemma9_text","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"global_head_dim":32}`, "nor what its global_head_dim does to the shape; known ones that begin alike: gemma gemma2 gemma3 gemma3_text"},
		{`{"model_type":"nemotron_h","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"vocab_size":9,"hybrid_override_pattern":"M*"}`, `hybrid_override_pattern="M*" is not of 3 layers`},
		{`{"model_type":"gpt_oss","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"vocab_size":9,"layer_types":["full_attention"]}`, `is not a list of 3 names`},
		{`{"model_type":"minimax","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"vocab_size":9,"attn_type_list":[1,0]}`, `attn_type_list=[1,0] is not a list of 3 numbers`},
		{`{"model_type":"qwen2_5_vl","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"vocab_size":9,"vision_config":{"depth":0,"hidden_size":8}}`, "vision_config: depth=0"},
		{`{"model_type":"zamba","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"mamba_d_state":16}`, "its mamba_d_state means layers without attention"},
		{llama(`"num_key_value_heads":-8`), "num_key_value_heads=-8 is not a whole number in 0..1048576"},
		{llama(`"intermediate_size":1e300`), "intermediate_size=1e300 is not a whole number"},
		{llama(`"intermediate_size":NaN`), "invalid character 'N'"},
		{llama(`"intermediate_size":110.5`), "intermediate_size=110.5 is not a whole number"},
		{llama(`"intermediate_size":"wide"`), `intermediate_size="wide" is not a whole number`},
		{llama(`"tie_word_embeddings":1`), "tie_word_embeddings=1 is not true or false"},
		{llama(`"num_key_value_heads":5`), "5 key/value heads do not divide 32 heads"},
		{llama(`"rope_scaling":{"original_max_position_embeddings":-1}`), "rope_scaling: original_max_position_embeddings=-1"},
		{`{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32}`, "vocab_size is missing or 0"},
		{`{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":31,"vocab_size":9}`, "31 heads do not divide a hidden size of 4096"},
		{`{"model_type":"mixtral","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":8,"vocab_size":9,"num_experts_per_tok":9}`, "experts_per_token=9 is not in 1..8"},
		{`{"model_type":"deepseek_v3","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":8,"vocab_size":9}`, "kv_lora_rank, qk_nope_head_dim and v_head_dim must be there"},
		{`{"model_type":"vit","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":8,"image_size":224,"patch_size":0}`, "image_size=224 and patch_size=0"},
		{`{"model_type":"mpt","d_model":64,"n_layers":2,"n_heads":4,"vocab_size":9,"expansion_ratio":-1}`, "expansion_ratio=-1 is not a number"},
		{`{"x":"` + strings.Repeat("y", maxBytes) + `"}`, "more than 4 MiB"},
	} {
		_, _, err := Read(strings.NewReader(tc.json))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.80s: %v, want %q", tc.json, err, tc.want)
		}
	}
}

// Every model read without an error is valid, with finite positive counts.
func FuzzRead(f *testing.F) {
	for _, tc := range cases {
		f.Add(tc.json)
	}
	for _, tc := range families {
		f.Add("{" + tc.config + "}")
	}
	for _, tc := range diffusers {
		f.Add("{" + tc.config + "}")
	}
	f.Add(`{"model_type":"llama","hidden_size":1e9}`)
	f.Add(`{"text_config":{"hidden_size":null}}`)
	f.Fuzz(func(t *testing.T, s string) {
		m, _, err := Read(strings.NewReader(s))
		if err != nil {
			if !errors.Is(err, ErrConfig) || m != (spec.Model{}) {
				t.Fatalf("%+v, %v", m, err)
			}
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, v := range []float64{m.Params(), m.ActiveParams(), m.TrainFLOPs(2048)} {
			if !(v > 0) || math.IsInf(v, 0) {
				t.Fatalf("%q: %+v counts %g", s, m, v)
			}
		}
	})
}
