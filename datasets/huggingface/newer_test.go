package huggingface

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// The counts of newer architectures are those of their published checkpoints, without the towers and the layers for
// multi-token prediction that are left out.
func TestNewerArchitectures(t *testing.T) {
	for _, tc := range []struct {
		name   string
		params float64 // in 10⁹
		active float64 // 0 = all
		config string
	}{
		{"ERNIE-4.5-21B-A3B", 21.825, 3.35, `"model_type":"ernie4_5_moe","hidden_size":2560,"intermediate_size":12288,"moe_intermediate_size":1536,"num_hidden_layers":28,"num_attention_heads":20,"num_key_value_heads":4,"moe_num_experts":64,"moe_num_shared_experts":2,"moe_k":6,"moe_layer_start_index":1,"vocab_size":103424`},
		{"Seed-OSS-36B", 36.15, 0, `"model_type":"seed_oss","hidden_size":5120,"num_hidden_layers":64,"intermediate_size":27648,"num_attention_heads":80,"num_key_value_heads":8,"head_dim":128,"vocab_size":155136`},
		{"MiniMax-M2", 228.69, 11.03, `"model_type":"minimax_m2","hidden_size":3072,"intermediate_size":1536,"num_hidden_layers":62,"num_attention_heads":48,"num_key_value_heads":8,"head_dim":128,"num_local_experts":256,"num_experts_per_tok":8,"vocab_size":200064`},
		{"dots.llm1", 142.77, 14.02, `"model_type":"dots1","hidden_size":4096,"num_hidden_layers":62,"intermediate_size":10944,"num_attention_heads":32,"vocab_size":152064,"first_k_dense_replace":1,"moe_intermediate_size":1408,"n_routed_experts":128,"n_shared_experts":2,"num_experts_per_tok":6`},
		{"EXAONE-4.0-32B", 32.00, 0, `"model_type":"exaone4","hidden_size":5120,"intermediate_size":27392,"num_attention_heads":40,"num_hidden_layers":64,"num_key_value_heads":8,"vocab_size":102400,"sliding_window":4096,"sliding_window_pattern":"LLLG"`},
		{"Ling-lite-1.5", 16.80, 2.75, `"model_type":"bailing_moe","hidden_size":2048,"intermediate_size":1408,"moe_intermediate_size":1408,"num_experts":64,"num_shared_experts":2,"num_attention_heads":16,"num_experts_per_tok":6,"num_hidden_layers":28,"num_key_value_heads":4,"vocab_size":126464`},
		{"DBRX", 131.597, 36.47, `"model_type":"dbrx","d_model":6144,"n_heads":48,"n_layers":40,"vocab_size":100352,"attn_config":{"kv_n_heads":8},"ffn_config":{"ffn_hidden_size":10752,"moe_num_experts":16,"moe_top_k":4}`},
		{"ChatGLM3-6B", 6.2436, 0, `"model_type":"chatglm","num_layers":28,"hidden_size":4096,"ffn_hidden_size":13696,"num_attention_heads":32,"kv_channels":128,"multi_query_attention":true,"multi_query_group_num":2,"padded_vocab_size":65024`},
		{"Qwen-7B", 7.7213, 0, `"model_type":"qwen","hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,"num_attention_heads":32,"vocab_size":151936`},
		{"GLM-4-9B", 9.40, 0, `"model_type":"glm","hidden_size":4096,"intermediate_size":13696,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":2,"head_dim":128,"vocab_size":151552`},
		{"GLM-4.7-Flash", 29.943, 3.9, `"model_type":"glm4_moe_lite","vocab_size":154880,"hidden_size":2048,"intermediate_size":10240,"moe_intermediate_size":1536,"num_hidden_layers":47,"num_attention_heads":20,"q_lora_rank":768,"kv_lora_rank":512,"qk_nope_head_dim":192,"qk_rope_head_dim":64,"v_head_dim":256,"n_routed_experts":64,"n_shared_experts":1,"num_experts_per_tok":4,"first_k_dense_replace":1`},
		{"Apertus-8B", 8.05, 0, `"model_type":"apertus","hidden_size":4096,"intermediate_size":21504,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":131072`},
		{"Qwen3-VL-30B-A3B, its language model", 30.532, 3.35, `"model_type":"qwen3_vl_moe","text_config":{"model_type":"qwen3_vl_moe_text","head_dim":128,"hidden_size":2048,"intermediate_size":6144,"moe_intermediate_size":768,"num_attention_heads":32,"num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":48,"num_key_value_heads":4,"vocab_size":151936}`},
		{"Llama-3.2-11B-Vision, its language model", 9.775, 0, `"model_type":"mllama","text_config":{"model_type":"mllama_text_model","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"cross_attention_layers":[3,8,13,18,23,28,33,38],"tie_word_embeddings":false}`},
		{"EXAONE-3.5-7.8B", 7.8184, 0, `"model_type":"exaone","hidden_size":4096,"intermediate_size":14336,"num_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":102400`},
		{"Hunyuan-A13B", 80.393, 12.747, `"model_type":"hunyuan_v1_moe","hidden_size":4096,"intermediate_size":3072,"moe_intermediate_size":[3072,3072],"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"num_experts":64,"moe_topk":[8,8],"num_shared_expert":[1,1],"vocab_size":128167,"use_cla":false`},
		{"Granite-4.0-H-Small", 32.207, 8.80, `"model_type":"granitemoehybrid","hidden_size":4096,"intermediate_size":768,"shared_intermediate_size":1536,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,"num_local_experts":72,"num_experts_per_tok":10,"mamba_n_heads":128,"mamba_d_head":64,"mamba_d_state":128,"mamba_n_groups":1,"vocab_size":100352,"tie_word_embeddings":true,"layer_types":[` + granite(4) + `]`},
		{"Jamba-v0.1", 51.5703, 12.11, `"model_type":"jamba","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"attn_layer_period":8,"attn_layer_offset":4,"expert_layer_period":2,"expert_layer_offset":1,"num_experts":16,"num_experts_per_tok":2,"mamba_d_state":16,"mamba_dt_rank":256,"vocab_size":65536`},
		{"mamba-2.8b", 2.76834, 0, `"model_type":"mamba","hidden_size":2560,"intermediate_size":5120,"num_hidden_layers":64,"state_size":16,"time_step_rank":160,"vocab_size":50280`},
		{"falcon-mamba-7b", 7.27267, 0, `"model_type":"falcon_mamba","hidden_size":4096,"intermediate_size":8192,"num_hidden_layers":64,"state_size":16,"time_step_rank":"auto","vocab_size":65024,"tie_word_embeddings":false,"expand":16`},
		{"Bamba-9B", 9.78, 0, `"model_type":"bamba","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"attn_layer_indices":[9,18,27],"mamba_d_state":128,"mamba_d_head":"auto","vocab_size":128256`},
		{"MiniCPM3-4B", 4.074, 0, `"model_type":"minicpm3","hidden_size":2560,"intermediate_size":6400,"num_hidden_layers":62,"num_attention_heads":40,"q_lora_rank":768,"kv_lora_rank":256,"qk_nope_head_dim":64,"qk_rope_head_dim":32,"vocab_size":73448`},
		{"deberta-v3-base", 0.183831552, 0, `"model_type":"deberta-v2","hidden_size":768,"intermediate_size":3072,"num_hidden_layers":12,"num_attention_heads":12,"vocab_size":128100,"position_buckets":256`},
		{"Granite-4.0-Micro", 3.4026, 0, `"model_type":"granitemoehybrid","hidden_size":2560,"intermediate_size":8192,"shared_intermediate_size":8192,"num_hidden_layers":40,"num_attention_heads":40,"num_key_value_heads":8,"num_local_experts":0,"vocab_size":100352,"tie_word_embeddings":true,"layer_types":[` + strings.ReplaceAll(granite(4), "mamba", "attention") + `]`},
	} {
		m, _, err := Read(strings.NewReader("{" + tc.config + "}"))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if tc.active == 0 {
			tc.active = tc.params
		}
		if off := m.Params()/(tc.params*1e9) - 1; math.Abs(off) > 0.001 {
			t.Errorf("%s: %.0f parameters, want %g·10⁹", tc.name, m.Params(), tc.params)
		}
		if off := m.ActiveParams()/(tc.active*1e9) - 1; math.Abs(off) > 0.005 {
			t.Errorf("%s: %.0f parameters per token, want %g·10⁹", tc.name, m.ActiveParams(), tc.active)
		}
	}
}

// granite returns the kinds of n times ten layers.
func granite(n int) string {
	ten := strings.Repeat(`"mamba",`, 5) + `"attention",` + strings.Repeat(`"mamba",`, 4)
	return strings.TrimSuffix(strings.Repeat(ten, n), ",")
}

// An unknown architecture with a field that may change its shape is refused by the names of both.
func TestRefusesUnknownShapes(t *testing.T) {
	const usual = `"hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100`
	for _, tc := range []struct{ model, field string }{
		{"arctic", `"moe_layer_frequency":1`}, {"wider", `"embedding_size":32`}, {"plm", `"kv_lora_rank":16`}, {"nas", `"block_configs":[{}]`},
		{"convolutional", `"layer_types":["conv","full_attention"]`}, {"gemma9_text", `"hidden_size_per_layer_input":16`}, {"step9_text", `"share_q_dim":32`}, {"buckets", `"position_buckets":256`},
	} {
		_, _, err := Read(strings.NewReader(`{"model_type":"` + tc.model + `","hidden_act":"silu",` + tc.field + "," + usual + "}"))
		name, _, _ := strings.Cut(tc.field, ":")
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tc.model) || !strings.Contains(err.Error(), strings.Trim(name, `"`)) {
			t.Errorf("%s with %s: %v", tc.model, tc.field, err)
		}
	}
	if _, _, err := Read(strings.NewReader(`{"model_type":"new",` + usual + "}")); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "hidden_act") {
		t.Errorf("without an activation: %v", err)
	}
	m, warnings, err := Read(strings.NewReader(`{"model_type":"new","hidden_act":"silu","num_key_value_heads":2,"rope_theta":10000,"max_position_embeddings":4096,"num_return_sequences":1,"layer_types":["full_attention","sliding_attention"],"eos_token_id":7,` + usual + "}"))
	if err != nil || len(warnings) == 0 || !m.GatedMLP {
		t.Errorf("a decoder of a new name: %+v, %v, %v", m, warnings, err)
	}
}
