package huggingface

import (
	"math"
	"strings"
	"testing"
)

const (
	clipL14  = `"vision_config":{"model_type":"clip_vision_model","hidden_size":1024,"image_size":336,"intermediate_size":4096,"num_attention_heads":16,"num_hidden_layers":24,"patch_size":14,"projection_dim":768,"vocab_size":32000}`
	pixtral  = `"vision_config":{"model_type":"pixtral","head_dim":64,"hidden_size":1024,"image_size":1540,"intermediate_size":4096,"num_attention_heads":16,"num_hidden_layers":24,"patch_size":14}`
	siglip   = `"hidden_size":1152,"intermediate_size":4304,"model_type":"siglip_vision_model","num_attention_heads":16,"num_hidden_layers":27,"patch_size":14,"vision_use_head":false}`
	internLM = `"llm_config":{"model_type":"internlm2","hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,"vocab_size":92553}`
)

// The parameters of networks of several parts, and of encoders and decoders with parts of unequal size, are those of the
// published checkpoints within 0.1 %.
func TestPartsOfUnequalSize(t *testing.T) {
	for _, tc := range []struct {
		name   string
		params float64
		tokens int // of the tower; 0 = there is none
		config string
	}{
		{"llava-1.5-7b", 7063427072, 576, `"model_type":"llava","text_config":{"model_type":"llama","max_position_embeddings":4096,"vocab_size":32064},` + clipL14},
		{"llava-v1.6-mistral-7b", 7566747648, 576, `"model_type":"llava_next","text_config":{"model_type":"mistral","num_key_value_heads":8,"vocab_size":32064},` + clipL14},
		{"gemma-3-12b", 12187325040, 4096, `"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":3840,"intermediate_size":15360,"num_hidden_layers":48,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":256,"vocab_size":262208},"vision_config":{"image_size":896,` + siglip},
		{"paligemma-3b", 2923466480, 256, `"model_type":"paligemma","text_config":{"model_type":"gemma","hidden_size":2048,"intermediate_size":16384,"num_attention_heads":8,"num_hidden_layers":18,"num_key_value_heads":1,"vocab_size":257216},"vision_config":{"image_size":224,` + siglip},
		{"paligemma-3b, as published", 2923466480, 256, `"model_type":"paligemma","hidden_size":2048,"projection_dim":2048,"text_config":{"model_type":"gemma","hidden_size":2048,"intermediate_size":16384,"num_attention_heads":8,"num_hidden_layers":18,"num_key_value_heads":1,"vocab_size":257216},"vision_config":{"image_size":224,` + siglip},
		{"SmolVLM", 2246272880, 729, `"model_type":"idefics3","scale_factor":3,"text_config":{"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":24,"num_attention_heads":32,"vocab_size":49155},"vision_config":{"model_type":"idefics3","hidden_size":1152,"intermediate_size":4304,"num_hidden_layers":27,"num_attention_heads":16,"image_size":384,"patch_size":14}`},
		{"opus-mt-en-de", 74410496, 0, `"model_type":"marian","d_model":512,"encoder_layers":6,"decoder_layers":6,"encoder_attention_heads":8,"decoder_attention_heads":8,"encoder_ffn_dim":2048,"decoder_ffn_dim":2048,"vocab_size":58101,"max_position_embeddings":512`},
		{"Mistral-Small-3.1-24B", 24011361280, 1024, `"model_type":"mistral3","spatial_merge_size":2,"multimodal_projector_bias":false,"text_config":{"model_type":"mistral","hidden_size":5120,"head_dim":128,"intermediate_size":32768,"num_attention_heads":32,"num_hidden_layers":40,"num_key_value_heads":8,"vocab_size":131072},` + pixtral},
		{"Llama-3.2-11B-Vision", 10670220835, 1600, `"model_type":"mllama","text_config":{"model_type":"mllama_text_model","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256},"vision_config":{"model_type":"mllama_vision_model","attention_heads":16,"hidden_size":1280,"image_size":560,"intermediate_size":5120,"max_num_tiles":4,"num_global_layers":8,"num_hidden_layers":32,"patch_size":14,"vision_output_dim":7680}`},
		{"InternVL2-8B", 8075365376, 1024, `"model_type":"internvl_chat","downsample_ratio":0.5,` + internLM + `,"vision_config":{"model_type":"intern_vit_6b","hidden_size":1024,"image_size":448,"intermediate_size":4096,"num_attention_heads":16,"num_hidden_layers":24,"patch_size":14,"qkv_bias":true}`},
		{"Qwen3-VL-8B", 8767123696, 1024, `"model_type":"qwen3_vl","tie_word_embeddings":false,"text_config":{"model_type":"qwen3_vl_text","head_dim":128,"hidden_size":4096,"intermediate_size":12288,"num_attention_heads":32,"num_hidden_layers":36,"num_key_value_heads":8,"vocab_size":151936},"vision_config":{"model_type":"qwen3_vl","deepstack_visual_indexes":[8,16,24],"depth":27,"hidden_size":1152,"in_channels":3,"intermediate_size":4304,"num_heads":16,"num_position_embeddings":2304,"patch_size":16,"spatial_merge_size":2,"temporal_patch_size":2}`},
		{"whisper-large-v3-turbo", 808878080, 0, `"model_type":"whisper","d_model":1280,"encoder_layers":32,"decoder_layers":4,"encoder_attention_heads":20,"encoder_ffn_dim":5120,"num_mel_bins":128,"max_source_positions":1500,"max_target_positions":448,"vocab_size":51866`},
		{"bart-base", 139420416, 0, `"model_type":"bart","d_model":768,"encoder_layers":6,"decoder_layers":6,"encoder_attention_heads":12,"encoder_ffn_dim":3072,"max_position_embeddings":1024,"vocab_size":50265`},
		{"opt-350m", 331196416, 0, `"model_type":"opt","hidden_size":1024,"ffn_dim":4096,"num_attention_heads":16,"num_hidden_layers":24,"vocab_size":50272,"max_position_embeddings":2048,"word_embed_proj_dim":512,"do_layer_norm_before":false`},
		{"electra-base", 108891648, 0, `"model_type":"electra","hidden_size":768,"embedding_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"vocab_size":30522,"max_position_embeddings":512`},
		{"electra-small", 13483008, 0, `"model_type":"electra","hidden_size":256,"embedding_size":128,"intermediate_size":1024,"num_attention_heads":4,"num_hidden_layers":12,"vocab_size":30522,"max_position_embeddings":512`},
	} {
		m, _, err := Read(strings.NewReader("{" + tc.config + "}"))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if off := m.Params()/tc.params - 1; math.Abs(off) > 0.001 {
			t.Errorf("%s: %.0f parameters, published %.0f: off by %+.3f %%", tc.name, m.Params(), tc.params, 100*off)
		}
		if m.Tower.Tokens != tc.tokens {
			t.Errorf("%s: a tower of %d tokens, want %d", tc.name, m.Tower.Tokens, tc.tokens)
		}
	}
}

// A tower that is not known, or has no sizes, is left out, with a warning.
func TestUnknownTower(t *testing.T) {
	const text = `"text_config":{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100}`
	for _, config := range []string{
		`"model_type":"llava",` + text, `"model_type":"new_vl",` + text + "," + clipL14,
		`"model_type":"llava",` + text + `,"vision_config":{"model_type":"new_tower","hidden_size":64}`, `"model_type":"llava",` + text + `,"vision_config":{"model_type":"clip_vision_model","hidden_size":64}`,
	} {
		m, warnings, err := Read(strings.NewReader("{" + config + "}"))
		if err != nil || m.Tower.Layers != 0 || len(warnings) == 0 || !strings.Contains(warnings[0].Error(), "other towers are left out") {
			t.Errorf("%s: tower %+v, %v, %v", config, m.Tower, warnings, err)
		}
	}
}

// Qwen 3.5 has the tower of Qwen3-VL, without outputs of its inner layers.
func TestTowerOfQwen35(t *testing.T) {
	const vision = `"depth":27,"hidden_size":1152,"intermediate_size":4304,"num_heads":16,"out_hidden_size":4096,"patch_size":16,"spatial_merge_size":2,"temporal_patch_size":2,"num_position_embeddings":2304,"deepstack_visual_indexes":[]}`
	const text = `"hidden_size":4096,"intermediate_size":12288,"num_attention_heads":16,"num_hidden_layers":32,"num_key_value_heads":4,"head_dim":256,"vocab_size":248320`
	before, _, err := Read(strings.NewReader(`{"model_type":"qwen3_vl","text_config":{"model_type":"qwen3_vl_text",` + text + `},"vision_config":{"model_type":"qwen3_vl",` + vision + `}`))
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := Read(strings.NewReader(`{"model_type":"qwen3_5","text_config":{"model_type":"qwen3_5_text","linear_num_key_heads":16,"linear_num_value_heads":32,"linear_key_head_dim":128,"linear_value_head_dim":128,` + text + `},"vision_config":{"model_type":"qwen3_5",` + vision + `}`))
	if err != nil || m.Tower.Layers == 0 || m.Tower != before.Tower {
		t.Errorf("the tower is %+v, want %+v: %v", m.Tower, before.Tower, err)
	}
}
