package huggingface

import (
	"errors"
	"math"
	"strings"
	"testing"
)

const (
	sd3Medium = `"_class_name":"SD3Transformer2DModel","sample_size":128,"patch_size":2,"in_channels":16,"num_layers":24,"attention_head_dim":64,"num_attention_heads":24,"joint_attention_dim":4096,"caption_projection_dim":1536,"pooled_projection_dim":2048,"out_channels":16`
	patches2  = `"_class_name":"Transformer2DModel","patch_size":2,"in_channels":4,"out_channels":8,"num_layers":28,"attention_head_dim":72,"num_attention_heads":16,"num_embeds_ada_norm":1000,`
	ditXL     = patches2 + `"norm_type":"ada_norm_zero","sample_size":32`
	pixArtXL  = patches2 + `"norm_type":"ada_norm_single","sample_size":128,"cross_attention_dim":1152,"caption_channels":4096`
	wan13     = `"_class_name":"WanTransformer3DModel","num_layers":30,"num_attention_heads":12,"attention_head_dim":128,"ffn_dim":8960,"freq_dim":256,"text_dim":4096,"in_channels":16,"out_channels":16,"patch_size":[1,2,2],"qk_norm":"rms_norm_across_heads","cross_attn_norm":true,"image_dim":null,"added_kv_proj_dim":null`
	cogVideo  = `"_class_name":"CogVideoXTransformer3DModel","attention_head_dim":64,"in_channels":16,"out_channels":16,"patch_size":2,"text_embed_dim":4096,"time_embed_dim":512,"sample_width":90,"sample_height":60,"sample_frames":49,"max_text_seq_length":226,`
	hunyuan   = `"_class_name":"HunyuanVideoTransformer3DModel","num_layers":20,"num_single_layers":40,"num_refiner_layers":2,"num_attention_heads":24,"attention_head_dim":128,"in_channels":16,"out_channels":16,"patch_size":2,"patch_size_t":1,"text_embed_dim":4096,"pooled_projection_dim":768,"guidance_embeds":true,"mlp_ratio":4.0`
	qwenFile  = `"_class_name":"QwenImageTransformer2DModel","num_layers":60,"num_attention_heads":24,"attention_head_dim":128,"in_channels":64,"out_channels":16,"patch_size":2,"joint_attention_dim":3584,"guidance_embeds":false`
	lumina    = `"_class_name":"Lumina2Transformer2DModel","num_layers":26,"num_refiner_layers":2,"hidden_size":2304,"num_attention_heads":24,"num_kv_heads":8,"in_channels":16,"out_channels":null,"patch_size":2,"sample_size":128,"multiple_of":256,"ffn_dim_multiplier":null,"cap_feat_dim":2304,"axes_dim_rope":[32,32,32]`
	zImageOne = `"_class_name":"ZImageTransformer2DModel","all_f_patch_size":[1],"all_patch_size":[2],"axes_dims":[32,48,48],"axes_lens":[1536,512,512],"cap_feat_dim":2560,"dim":3840,"in_channels":16,"n_heads":30,"n_kv_heads":30,"n_layers":30,"n_refiner_layers":2,"qk_norm":true`
	fluxDev   = `"_class_name":"FluxTransformer2DModel","num_layers":19,"num_single_layers":38,"attention_head_dim":128,"num_attention_heads":24,"joint_attention_dim":4096,"in_channels":64,"pooled_projection_dim":768,"guidance_embeds":`
)

// diffusers are config.json files of released diffusion transformers, with the parameters of their checkpoints and the
// tokens of the sample.
var diffusers = []struct {
	name   string
	params float64
	tokens int
	source string
	config string
}{
	{"FLUX.1-dev", 11901408320, 4608, "safetensors total of huggingface.co/black-forest-labs/FLUX.1-dev, transformer", fluxDev + "true"},
	{"FLUX.1-schnell", 11891178560, 4608, "safetensors total of huggingface.co/black-forest-labs/FLUX.1-schnell, transformer", fluxDev + "false"},
	{"SD3 Medium", 2028328000, 4429, "parameters of the transformer of huggingface.co/stabilityai/stable-diffusion-3-medium-diffusers, without the table of positions", sd3Medium},
	{"SD3.5 Medium", 2243171520, 4429, "huggingface.co/stabilityai/stable-diffusion-3.5-medium: 2.5 billion with its table of 384 x 384 positions", sd3Medium + `,"qk_norm":"rms_norm","dual_attention_layers":[0,1,2,3,4,5,6,7,8,9,10,11,12]`},
	{"DiT-XL/2", 675129632 - 256*1152 + 27*(257*1152+1153*1152+1001*1152), 256, "huggingface.co/facebook/DiT-XL-2-256; Peebles and Xie 2023: 675 million, with one embedding of timestep and class instead of 28", ditXL},
	{"PixArt-Σ", 610856096, 4096, "parameters of the transformer of huggingface.co/PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", pixArtXL + `,"use_additional_conditions":false`},
	{"PixArt-α", 611e6, 4096, "huggingface.co/PixArt-alpha/PixArt-XL-2-1024-MS: 0.611 billion", pixArtXL},
	{"PixArt-α 512", 610856096, 1024, "that of PixArt-Σ: neither embeds resolution and aspect ratio", strings.Replace(pixArtXL, `"sample_size":128`, `"sample_size":64`, 1)},
	{"Wan2.1-T2V-1.3B", 1418996800, 32760, "safetensors total of huggingface.co/Wan-AI/Wan2.1-T2V-1.3B", wan13},
	{"Wan2.2-T2V-A14B", 14288491584, 32760, "safetensors total of huggingface.co/Wan-AI/Wan2.2-T2V-A14B-Diffusers, transformer", strings.NewReplacer(`"num_layers":30,"num_attention_heads":12`, `"num_layers":40,"num_attention_heads":40`, "8960", "13824").Replace(wan13)},
	{"Wan2.2-TI2V-5B", 4999787712, 27280, "safetensors total of huggingface.co/Wan-AI/Wan2.2-TI2V-5B-Diffusers", strings.NewReplacer(`"num_attention_heads":12`, `"num_attention_heads":24`, "8960", "14336", `channels":16`, `channels":48`).Replace(wan13)},
	{"CogVideoX-5b", 5570283072, 17776, "github.com/a-r-r-o-w/cogvideox-factory, full finetuning: trainable parameters", cogVideo + `"num_layers":42,"num_attention_heads":48`},
	{"HunyuanVideo", 12821012544, 119056, "parameters of the transformer of huggingface.co/hunyuanvideo-community/HunyuanVideo", hunyuan},
	{"HunyuanVideo-1.5", 8326608160, 51275, "safetensors total of huggingface.co/hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v", `"_class_name":"HunyuanVideo15Transformer3DModel","in_channels":65,"out_channels":32,"num_attention_heads":16,"attention_head_dim":128,"num_layers":54,"num_refiner_layers":2,"mlp_ratio":4.0,"patch_size":1,"patch_size_t":1,"qk_norm":"rms_norm","text_embed_dim":3584,"text_embed_2_dim":1472,"image_embed_dim":1152,"target_size":640,"task_type":"t2v"`},
	{"LTX-Video", 1923385472, 6144, "github.com/a-r-r-o-w/finetrainers, full finetuning of LTX-Video: trainable parameters", `"_class_name":"LTXVideoTransformer3DModel","attention_bias":true,"attention_head_dim":64,"caption_channels":4096,"cross_attention_dim":2048,"in_channels":128,"num_attention_heads":32,"num_layers":28,"out_channels":128,"patch_size":1,"patch_size_t":1,"qk_norm":"rms_norm_across_heads"`},
	{"Qwen-Image", 20430401088, 4608, "safetensors total of huggingface.co/Qwen/Qwen-Image", qwenFile},
	{"Lumina-Image-2.0", 2609769152, 4352, "safetensors total of huggingface.co/Alpha-VLLM/Lumina-Image-2.0", lumina},
	{"Z-Image-Turbo", 6154908736, 4608, "safetensors total of huggingface.co/Tongyi-MAI/Z-Image-Turbo", zImageOne},
	{"FLUX.2-dev", 32.22e9, 4608, "huggingface.co/black-forest-labs/FLUX.2-dev: 32 billion; counted from its matrices", `"_class_name":"Flux2Transformer2DModel","num_layers":8,"num_single_layers":48,"attention_head_dim":128,"num_attention_heads":48,"joint_attention_dim":15360,"in_channels":128,"mlp_ratio":3.0,"timestep_guidance_channels":256,"patch_size":1`},
}

// The parameters of diffusion transformers are those of their checkpoints, and tokens those of the stated sample.
func TestDiffusion(t *testing.T) {
	for _, tc := range diffusers {
		m, warnings, err := Read(strings.NewReader("{" + tc.config + "}"))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		within := 1e-5
		if math.Mod(tc.params, 1e6) == 0 { // a rounded count
			within = 1e-3
		}
		if off := m.Params()/tc.params - 1; math.Abs(off) > within {
			t.Errorf("%s: %.0f parameters, %s has %.0f: off by %+.4f %%", tc.name, m.Params(), tc.source, tc.params, 100*off)
		}
		if m.SeqLen != tc.tokens || len(warnings) == 0 {
			t.Errorf("%s: a sample of %d tokens, want %d; warnings %v", tc.name, m.SeqLen, tc.tokens, warnings)
		}
	}
}

// The work of diffusion transformers is that counted by hand: multiplications of matrices, by the tokens that pass
// them, and of scores. Embeddings and the modulation of the output are left out by hand: they are below 0.5 %.
func TestDiffusionWork(t *testing.T) {
	type work func(matrix func(tokens, in, out float64), scores func(queries, keys, width float64))
	for _, tc := range []struct {
		name, config string
		layers       float64
		layer        work
		more         work // beside the layers
	}{
		{"SD3 Medium", sd3Medium, 24, func(matrix, scores func(a, b, c float64)) {
			matrix(4096+333, 1536, 12*1536)
			matrix(2, 1536, 6*1536)
			scores(4429, 4429, 1536)
		}, func(matrix, _ func(a, b, c float64)) {
			matrix(-333, 1536, 9*1536) // of the last block
			matrix(333, 4096, 1536)
		}},
		{"SD3.5 Medium", sd3Medium + `,"dual_attention_layers":[0,1,2,3,4,5,6,7,8,9,10,11,12]`, 24, func(matrix, scores func(a, b, c float64)) {
			matrix(4096+333, 1536, 12*1536)
			scores(4429, 4429, 1536)
		}, func(matrix, scores func(a, b, c float64)) {
			matrix(-333, 1536, 9*1536)
			matrix(333, 4096, 1536)
			matrix(13*4096, 1536, 4*1536)
			scores(13*4096, 4096, 1536)
		}},
		{"PixArt-α", pixArtXL, 28, func(matrix, scores func(a, b, c float64)) {
			matrix(4096, 1152, 14*1152)
			matrix(120, 1152, 2*1152)
			scores(4096, 4096+120, 1152)
		}, nil},
		{"Wan2.1-T2V-1.3B", wan13, 30, func(matrix, scores func(a, b, c float64)) {
			matrix(32760, 1536, 6*1536+2*8960)
			matrix(512, 1536, 2*1536)
			scores(32760, 32760+512, 1536)
		}, nil},
		{"Wan2.1-I2V-14B", strings.NewReplacer(`"num_layers":30,"num_attention_heads":12`, `"num_layers":40,"num_attention_heads":40`, "8960", "13824", `"in_channels":16`, `"in_channels":36`,
			`"image_dim":null,"added_kv_proj_dim":null`, `"image_dim":1280,"added_kv_proj_dim":5120`).Replace(wan13), 40, func(matrix, scores func(a, b, c float64)) {
			matrix(32760, 5120, 6*5120+2*13824)
			matrix(512+257, 5120, 2*5120)
			scores(32760, 32760+512+257, 5120)
		}, nil},
		{"CogVideoX-2b", cogVideo + `"num_layers":30,"num_attention_heads":30`, 30, func(matrix, scores func(a, b, c float64)) {
			matrix(17776, 1920, 12*1920)
			scores(17776, 17776, 1920)
		}, nil},
		{"HunyuanVideo", hunyuan, 60, func(matrix, scores func(a, b, c float64)) {
			matrix(119056, 3072, 12*3072)
			scores(119056, 119056, 3072)
		}, nil},
		{"Qwen-Image", qwenFile, 60, func(matrix, scores func(a, b, c float64)) {
			matrix(4608, 3072, 12*3072)
			scores(4608, 4608, 3072)
		}, nil},
		{"Lumina-Image-2.0", lumina, 26, func(matrix, scores func(a, b, c float64)) {
			matrix(4352, 2304, 2*2304+2*768+3*9216)
			scores(4352, 4352, 2304)
		}, func(matrix, scores func(a, b, c float64)) {
			matrix(2*4352, 2304, 2*2304+2*768+3*9216)
			scores(2*4096, 4096, 2304)
		}},
	} {
		m, _, err := Read(strings.NewReader("{" + tc.config + "}"))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		forward := 0.0
		matrix := func(tokens, in, out float64) { forward += 2 * tokens * in * out }
		scores := func(queries, keys, width float64) { forward += 4 * queries * keys * width }
		tc.layer(matrix, scores)
		forward *= tc.layers
		if tc.more != nil {
			tc.more(matrix, scores)
		}
		if off := m.TrainFLOPs(0)/(3*forward) - 1; off < -1e-4 || off > 5e-3 {
			t.Errorf("%s: %.4g FLOPs a sample, by hand %.4g: off by %+.3f %%", tc.name, m.TrainFLOPs(0), 3*forward, 100*off)
		}
	}
	// Peebles and Xie 2023, table 4: 118.64 billion multiplications of one image of 256 pixels.
	m, _, err := Read(strings.NewReader("{" + ditXL + "}"))
	if err != nil {
		t.Fatal(err)
	}
	if off := m.TrainFLOPs(0)/(6*118.64e9) - 1; math.Abs(off) > 1e-3 {
		t.Errorf("DiT-XL/2: %.4g FLOPs a sample, published 6 x 118.64e9: off by %+.3f %%", m.TrainFLOPs(0), 100*off)
	}
}

func TestDiffusionErrors(t *testing.T) {
	for _, tc := range []struct{ config, want string }{
		{`"_class_name":"SanaTransformer2DModel"`, "its attention is linear"},
		{`"_class_name":"UNet2DConditionModel"`, "different widths and resolutions"},
		{`"_class_name":"Transformer2DModel","norm_type":"layer_norm"`, `norm_type="layer_norm" is not of a diffusion transformer`},
		{strings.Replace(ditXL, `"sample_size":32`, `"sample_size":1`, 1), "sample_size=1 and patch_size=2"},
		{strings.Replace(pixArtXL, `"cross_attention_dim":1152`, `"cross_attention_dim":768`, 1), "cross_attention_dim=768 is not the hidden size 1152"},
		{strings.Replace(wan13, `[1,2,2]`, `[1,2]`, 1), "patch_size=[1,2] is not a list of three widths"},
		{strings.Replace(wan13, `[1,2,2]`, `[1,0,2]`, 1), "patch_size=[1,0,2] gives no patch"},
		{cogVideo + `"patch_size":0`, "patch_size=0"},
		{strings.Replace(lumina, `"num_kv_heads":8`, `"num_kv_heads":0`, 1), "24 heads and 0 key/value heads"},
		{sd3Medium + `,"dual_attention_layers":[24]`, "dual_attention_layers=[24] is not a list"},
		{`"model_type":"step3_text","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":9`, "moe_layers_enum must be there"},
	} {
		_, _, err := Read(strings.NewReader("{" + tc.config + "}"))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.config, err, tc.want)
		}
	}
}
