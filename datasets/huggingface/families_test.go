package huggingface

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// families are config.json files of released models, cut to the fields that determine the shape, with the parameters of
// their checkpoints.
var families = []struct {
	name   string
	params float64
	source string
	config string
}{
	{"albert-base-v2", 11683584, "KerasHub preset albert_base_en_uncased, params", `"model_type":"albert","embedding_size":128,"hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"num_hidden_groups":1,"inner_group_num":1,"vocab_size":30000,"max_position_embeddings":512,"type_vocab_size":2,"hidden_act":"gelu_new"`},
	{"albert-xxlarge-v2", 222595584, "AlbertModel of albert-xxlarge-v2, parameters counted by transformers", `"model_type":"albert","embedding_size":128,"hidden_size":4096,"intermediate_size":16384,"num_attention_heads":64,"num_hidden_layers":12,"num_hidden_groups":1,"inner_group_num":1,"vocab_size":30000,"max_position_embeddings":512,"type_vocab_size":2,"hidden_act":"gelu_new"`},
	{"siglip-base", 203155970, "MTEB model registry, google/siglip-base-patch16-224, n_parameters", `"model_type":"siglip","text_config":{"model_type":"siglip_text_model"},"vision_config":{"model_type":"siglip_vision_model"}`},
	{"siglip-so400m-384", 877960498, "MTEB model registry, google/siglip-so400m-patch14-384, n_parameters", `"model_type":"siglip","text_config":{"hidden_size":1152,"intermediate_size":4304,"model_type":"siglip_text_model","num_attention_heads":16,"num_hidden_layers":27},"vision_config":{"hidden_size":1152,"image_size":384,"intermediate_size":4304,"model_type":"siglip_vision_model","num_attention_heads":16,"num_hidden_layers":27,"patch_size":14}`},
	{"siglip2-base-224", 375187970, "safetensors total of google/siglip2-base-patch16-224 on the Hub", `"model_type":"siglip","text_config":{"model_type":"siglip_text_model","vocab_size":256000,"projection_size":768},"vision_config":{"model_type":"siglip_vision_model"}`},
	{"siglip-vision", 92884224, "the vision half of google/siglip-base-patch16-224", `"model_type":"siglip_vision_model","hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"image_size":224,"patch_size":16,"hidden_act":"gelu_pytorch_tanh"`},
	{"clip-vision", 303179776, "the vision half of openai/clip-vit-large-patch14", `"model_type":"clip_vision_model","hidden_size":1024,"intermediate_size":4096,"num_attention_heads":16,"num_hidden_layers":24,"image_size":224,"patch_size":14,"projection_dim":768,"hidden_act":"quick_gelu"`},
	{"clip-b32", 151277313, "safetensors total of openai/clip-vit-base-patch32 on the Hub; a file with defaults left out", `"model_type":"clip","projection_dim":512,"text_config":{"model_type":"clip_text_model"},"vision_config":{"model_type":"clip_vision_model"}`},
	{"LFM2-1.2B", 1170340608, "safetensors total of LiquidAI/LFM2-1.2B on the Hub", `"model_type":"lfm2","block_auto_adjust_ff_dim":true,"block_dim":2048,"block_ff_dim":12288,"block_ffn_dim_multiplier":1.0,"block_multiple_of":256,"conv_L_cache":3,"conv_bias":false,"conv_dim":2048,"full_attn_idxs":[2,5,8,10,12,14],"hidden_size":2048,"num_attention_heads":32,"num_heads":32,"num_hidden_layers":16,"num_key_value_heads":8,"vocab_size":65536,"max_position_embeddings":128000`},
	{"LFM2-350M", 354483968, "safetensors total of LiquidAI/LFM2-350M on the Hub", `"model_type":"lfm2","block_auto_adjust_ff_dim":true,"block_dim":1024,"block_ff_dim":6656,"block_ffn_dim_multiplier":1.0,"block_multiple_of":256,"conv_L_cache":3,"conv_bias":false,"full_attn_idxs":[2,5,8,10,12,14],"hidden_size":1024,"num_attention_heads":16,"num_hidden_layers":16,"num_key_value_heads":8,"vocab_size":65536,"max_position_embeddings":128000`},
	{"LFM2-8B-A1B", 8339929856, "safetensors total in BF16 of LiquidAI/LFM2-8B-A1B on the Hub", `"model_type":"lfm2_moe","conv_L_cache":3,"conv_bias":false,"hidden_size":2048,"intermediate_size":7168,"layer_types":["conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","full_attention","conv","conv"],"moe_intermediate_size":1792,"num_attention_heads":32,"num_dense_layers":2,"num_experts":32,"num_experts_per_tok":4,"num_hidden_layers":24,"num_key_value_heads":8,"vocab_size":65536,"use_expert_bias":true`},
	{"recurrentgemma-2b", 2682862080, "safetensors total of google/recurrentgemma-2b on the Hub", `"_block_types":["recurrent","recurrent","attention"],"model_type":"recurrent_gemma","attention_window_size":2048,"conv1d_width":4,"head_dim":256,"hidden_activation":"gelu_pytorch_tanh","hidden_size":2560,"intermediate_size":15360,"lru_width":2560,"num_attention_heads":10,"num_hidden_layers":26,"num_key_value_heads":1,"vocab_size":256000`},
	{"Falcon-H1-0.5B", 521411104, "safetensors total of tiiuae/Falcon-H1-0.5B-Base on the Hub", `"model_type":"falcon_h1","head_dim":64,"hidden_act":"silu","hidden_size":1024,"intermediate_size":2048,"mamba_chunk_size":128,"mamba_conv_bias":true,"mamba_d_conv":4,"mamba_d_head":64,"mamba_d_ssm":1536,"mamba_d_state":128,"mamba_expand":2,"mamba_n_groups":1,"mamba_n_heads":24,"mamba_rms_norm":false,"num_attention_heads":8,"num_hidden_layers":36,"num_key_value_heads":2,"vocab_size":32784,"tie_word_embeddings":false,"mlp_expansion_factor":8,"projectors_bias":false`},
	{"Zamba2-1.2B", 1215064704, "safetensors total of Zyphra/Zamba2-1.2B on the Hub", `"model_type":"zamba2","attention_head_dim":128,"attention_hidden_size":4096,"adapter_rank":128,"hidden_size":2048,"intermediate_size":8192,"hybrid_layer_ids":[5,11,17,23,29,35],"mamba_d_conv":4,"mamba_d_state":128,"mamba_expand":2,"mamba_headdim":64,"mamba_ngroups":1,"n_mamba_heads":64,"num_attention_heads":32,"num_hidden_layers":38,"num_key_value_heads":32,"num_mem_blocks":1,"use_mem_rope":true,"use_shared_attention_adapter":true,"vocab_size":32000`},
	{"kimi-linear", 49122681728, "safetensors total of moonshotai/Kimi-Linear-48B-A3B-Base on the Hub", `"model_type":"kimi_linear","hidden_act":"silu","q_lora_rank":null,"hidden_size":2304,"num_hidden_layers":27,"vocab_size":163840,"num_attention_heads":32,"num_key_value_heads":32,"head_dim":72,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"num_experts":256,"num_experts_per_token":8,"num_shared_experts":1,"moe_intermediate_size":1024,"first_k_dense_replace":1,"intermediate_size":9216,"moe_layer_freq":1,"tie_word_embeddings":false,"linear_attn_config":{"full_attn_layers":[4,8,12,16,20,24,27],"kda_layers":[1,2,3,5,6,7,9,10,11,13,14,15,17,18,19,21,22,23,25,26],"head_dim":128,"num_heads":32,"short_conv_kernel_size":4}`},
	{"rwkv-4-169m", 169342464, "num_parameters of RWKV/rwkv-4-169m-pile", `"model_type":"rwkv","hidden_size":768,"attention_hidden_size":768,"intermediate_size":3072,"num_hidden_layers":12,"vocab_size":50277,"context_length":1024,"rescale_every":6,"tie_word_embeddings":false`},
	{"mpnet-base", 109486464, "safetensors total of sentence-transformers/all-mpnet-base-v2 on the Hub", `"model_type":"mpnet","hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"vocab_size":30527,"max_position_embeddings":514,"relative_attention_num_buckets":32,"hidden_act":"gelu"`},
	{"nomic-embed", 136731648, "safetensors total of nomic-ai/nomic-embed-text-v1.5 on the Hub", `"model_type":"nomic_bert","n_embd":768,"n_head":12,"n_inner":3072,"n_layer":12,"n_positions":8192,"vocab_size":30528,"activation_function":"swiglu","type_vocab_size":2`},
	{"longformer-base", 148659456, "LongformerModel of allenai/longformer-base-4096, parameters counted by transformers", `"model_type":"longformer","hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"vocab_size":50265,"max_position_embeddings":4098,"attention_window":[512,512,512,512,512,512,512,512,512,512,512,512],"hidden_act":"gelu","type_vocab_size":1`},
	{"esm2-650m", 651043254, "EsmForMaskedLM of facebook/esm2_t33_650M_UR50D, parameters counted by transformers", `"model_type":"esm","hidden_size":1280,"intermediate_size":5120,"num_attention_heads":20,"num_hidden_layers":33,"vocab_size":33,"max_position_embeddings":1026,"position_embedding_type":"rotary","hidden_act":"gelu"`},
	{"mbart-large-50", 610879488, "num_parameters of facebook/mbart-large-50", `"model_type":"mbart","d_model":1024,"encoder_layers":12,"decoder_layers":12,"encoder_attention_heads":16,"decoder_attention_heads":16,"encoder_ffn_dim":4096,"decoder_ffn_dim":4096,"max_position_embeddings":1024,"vocab_size":250054,"num_hidden_layers":12`},
	{"nllb-600M", 615073792, "num_parameters of facebook/nllb-200-distilled-600M", `"model_type":"m2m_100","d_model":1024,"encoder_layers":12,"decoder_layers":12,"encoder_attention_heads":16,"decoder_attention_heads":16,"encoder_ffn_dim":4096,"decoder_ffn_dim":4096,"max_position_embeddings":1024,"vocab_size":256206,"num_hidden_layers":12`},
	{"dinov2-base", 86580480, "Dinov2Model of facebook/dinov2-base, parameters counted by transformers", `"model_type":"dinov2","hidden_size":768,"num_attention_heads":12,"num_hidden_layers":12,"mlp_ratio":4,"image_size":518,"patch_size":14,"num_channels":3,"layerscale_value":1.0,"qkv_bias":true`},
	{"dinov2-giant", 1136480768, "Dinov2Model of facebook/dinov2-giant, parameters counted by transformers", `"model_type":"dinov2","hidden_size":1536,"num_attention_heads":24,"num_hidden_layers":40,"mlp_ratio":4,"image_size":518,"patch_size":14,"num_channels":3,"use_swiglu_ffn":true`},
	{"dinov3-vitb16", 85660416, "safetensors total of facebook/dinov3-vitb16-pretrain-lvd1689m on the Hub", `"model_type":"dinov3_vit","hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"image_size":224,"patch_size":16,"num_channels":3,"num_register_tokens":4,"hidden_act":"gelu","key_bias":false,"layerscale_value":1.0`},
	{"deit-base", 86567656, "safetensors total of facebook/deit-base-patch16-224 on the Hub", `"model_type":"deit","hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"image_size":224,"patch_size":16,"num_channels":3,"num_labels":1000`},
	{"biogpt", 346763264, "num_parameters of microsoft/biogpt", `"model_type":"biogpt","hidden_size":1024,"intermediate_size":4096,"num_attention_heads":16,"num_hidden_layers":24,"vocab_size":42384,"max_position_embeddings":1024,"hidden_act":"gelu"`},
	{"openai-gpt", 116534784, "OpenAIGPTModel of openai-community/openai-gpt, parameters counted by transformers", `"model_type":"openai-gpt","n_embd":768,"n_head":12,"n_layer":12,"n_positions":512,"vocab_size":40478,"afn":"gelu"`},
	{"xglm-564M", 564463616, "num_parameters of facebook/xglm-564M", `"model_type":"xglm","d_model":1024,"ffn_dim":4096,"attention_heads":16,"num_layers":24,"vocab_size":256008,"max_position_embeddings":2048,"activation_function":"gelu"`},
	{"smolvlm2-2.2b", 2246784880, "safetensors total of HuggingFaceTB/SmolVLM2-2.2B-Instruct on the Hub", `"model_type":"smolvlm","scale_factor":3,"text_config":{"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_attention_heads":32,"num_key_value_heads":32,"num_hidden_layers":24,"head_dim":64,"vocab_size":49280},"vision_config":{"model_type":"smolvlm_vision","hidden_size":1152,"intermediate_size":4304,"num_attention_heads":16,"num_hidden_layers":27,"patch_size":14,"image_size":384}`},
	{"bitnet-2b", 2412820480, "safetensors total of microsoft/bitnet-b1.58-2B-4T-bf16 on the Hub", `"model_type":"bitnet","hidden_size":2560,"intermediate_size":6912,"num_attention_heads":20,"num_key_value_heads":5,"num_hidden_layers":30,"vocab_size":128256,"tie_word_embeddings":true,"hidden_act":"relu2"`},
	{"mamba2-130m", 128989632, "Mamba2ForCausalLM of state-spaces/mamba2-130m, parameters counted by transformers", `"model_type":"mamba2","hidden_size":768,"num_hidden_layers":24,"num_heads":24,"head_dim":64,"state_size":128,"n_groups":1,"vocab_size":50288,"tie_word_embeddings":true`},
	{"deberta-v2-xlarge", 884592640, "DebertaV2Model of microsoft/deberta-v2-xlarge, parameters counted by transformers", `"model_type":"deberta-v2","hidden_size":1536,"intermediate_size":6144,"num_hidden_layers":24,"num_attention_heads":24,"vocab_size":128100,"position_buckets":256,"conv_kernel_size":3`},
	{"deberta-v3-large", 434012160, "DebertaV2Model of microsoft/deberta-v3-large, parameters counted by transformers", `"model_type":"deberta-v2","hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":24,"num_attention_heads":16,"vocab_size":128100,"position_buckets":256`},
	{"flan-t5-xxl", 11135332352, "num_parameters of google/flan-t5-xxl", `"model_type":"t5","d_model":4096,"d_ff":10240,"d_kv":64,"num_heads":64,"num_layers":24,"num_decoder_layers":24,"vocab_size":32128,"feed_forward_proj":"gated-gelu","tie_word_embeddings":false`},
	{"t5-small", 60506624, "num_parameters of google-t5/t5-small", `"model_type":"t5","d_model":512,"d_ff":2048,"d_kv":64,"num_heads":8,"num_layers":6,"num_decoder_layers":6,"vocab_size":32128,"relative_attention_num_buckets":32,"feed_forward_proj":"relu"`},
	{"bart-large", 406291456, "BartModel of facebook/bart-large, parameters counted by transformers", `"model_type":"bart","d_model":1024,"encoder_layers":12,"decoder_layers":12,"encoder_attention_heads":16,"decoder_attention_heads":16,"encoder_ffn_dim":4096,"decoder_ffn_dim":4096,"max_position_embeddings":1024,"vocab_size":50265`},
	{"ModernBERT-base", 149014272, "ModernBertModel of answerdotai/ModernBERT-base, parameters counted by transformers", `"model_type":"modernbert","hidden_size":768,"intermediate_size":1152,"num_attention_heads":12,"num_hidden_layers":22,"vocab_size":50368,"max_position_embeddings":8192,"global_attn_every_n_layers":3,"local_attention":128`},
	{"OLMoE-1B-7B", 6919161856, "safetensors total of allenai/OLMoE-1B-7B-0924 on the Hub", `"model_type":"olmoe","hidden_size":2048,"intermediate_size":1024,"num_attention_heads":16,"num_key_value_heads":16,"num_hidden_layers":16,"num_experts":64,"num_experts_per_tok":8,"vocab_size":50304`},
	{"SmolLM3-3B", 3075098624, "safetensors total of HuggingFaceTB/SmolLM3-3B on the Hub", `"model_type":"smollm3","hidden_size":2048,"intermediate_size":11008,"num_attention_heads":16,"num_key_value_heads":4,"num_hidden_layers":36,"vocab_size":128256`},
	{"phi-3.5-moe", 41873153344, "safetensors total of microsoft/Phi-3.5-MoE-instruct on the Hub", `"model_type":"phimoe","hidden_size":4096,"intermediate_size":6400,"num_attention_heads":32,"num_key_value_heads":8,"num_hidden_layers":32,"num_local_experts":16,"num_experts_per_tok":2,"vocab_size":32064,"attention_bias":true,"lm_head_bias":true`},
	{"ernie-0.3b", 360748032, "safetensors total of baidu/ERNIE-4.5-0.3B-PT on the Hub", `"model_type":"ernie4_5","hidden_size":1024,"intermediate_size":3072,"num_attention_heads":16,"num_key_value_heads":2,"head_dim":128,"num_hidden_layers":18,"vocab_size":103424,"tie_word_embeddings":true`},
	{"beit-base", 86530984, "beit_base_patch16_224 with 1000 classes in timm's results, 86.53 million; parameters counted by timm", `"model_type":"beit","hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,"image_size":224,"patch_size":16,"num_channels":3,"layer_scale_init_value":0.1,"use_relative_position_bias":true,"use_shared_relative_position_bias":false,"use_absolute_position_embeddings":false,"use_mask_token":false,"use_mean_pooling":true,"num_labels":1000,"vocab_size":8192`},
	{"nanochat-d20", 560988160, "github.com/karpathy/nanochat, log of the 20 layer run: number of parameters", `"model_type":"nanochat","hidden_size":1280,"intermediate_size":5120,"num_attention_heads":10,"num_key_value_heads":10,"num_hidden_layers":20,"vocab_size":65536,"hidden_act":"relu2","tie_word_embeddings":false`},
	{"nanochat-d32", 1879048192, "huggingface.co/karpathy/nanochat-d32: 1.88 billion", `"model_type":"nanochat","hidden_size":2048,"intermediate_size":8192,"num_attention_heads":16,"num_key_value_heads":16,"num_hidden_layers":32,"vocab_size":65536,"hidden_act":"relu2","tie_word_embeddings":false`},
	{"Phi-3-vision", 4146621440, "safetensors total of huggingface.co/microsoft/Phi-3.5-vision-instruct, of the same shape", `"model_type":"phi3_v","hidden_size":3072,"intermediate_size":8192,"num_attention_heads":32,"num_key_value_heads":32,"num_hidden_layers":32,"vocab_size":32064,"original_max_position_embeddings":4096,"sliding_window":131072,"img_processor":{"image_dim_out":1024,"model_name":"openai/clip-vit-large-patch14-336","name":"clip_vision_model","num_img_tokens":144}`},
	{"Trinity-Nano", 6120003328, "safetensors total of huggingface.co/arcee-ai/Trinity-Nano-Preview: 6.12 billion", `"model_type":"afmoe","global_attn_every_n_layers":4,"head_dim":128,"hidden_size":1024,"intermediate_size":3072,"moe_intermediate_size":256,"num_attention_heads":8,"num_dense_layers":2,"num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":56,"num_key_value_heads":2,"num_shared_experts":1,"sliding_window":2048,"vocab_size":200192`},
	{"Trinity-Mini", 26.12e9, "huggingface.co/arcee-ai/Trinity-Mini: 26 billion, counted from its tensors", `"model_type":"afmoe","global_attn_every_n_layers":4,"head_dim":128,"hidden_size":2048,"intermediate_size":6144,"moe_intermediate_size":1024,"num_attention_heads":32,"num_dense_layers":2,"num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":32,"num_key_value_heads":4,"num_shared_experts":1,"sliding_window":2048,"vocab_size":200192`},
	{"GLM-4.1V-9B", 10292777472, "counted from the tensors of huggingface.co/zai-org/GLM-4.1V-9B-Thinking, with norms and biases", `"model_type":"glm4v","text_config":{"model_type":"glm4v_text","hidden_size":4096,"intermediate_size":13696,"num_attention_heads":32,"num_key_value_heads":2,"num_hidden_layers":40,"vocab_size":151552,"attention_bias":true},"vision_config":{"model_type":"glm4v_vision","depth":24,"hidden_size":1536,"num_heads":12,"intermediate_size":13696,"out_hidden_size":4096,"patch_size":14,"image_size":336,"spatial_merge_size":2,"temporal_patch_size":2}`},
	{"GLM-4.1V-9B, fields at the top", 10292777472, "as GLM-4.1V-9B", `"model_type":"glm4v","hidden_size":4096,"intermediate_size":13696,"num_attention_heads":32,"num_key_value_heads":2,"num_hidden_layers":40,"vocab_size":151552,"attention_bias":true,"vision_config":{"model_type":"glm4v","depth":24,"hidden_size":1536,"num_heads":12,"intermediate_size":13696,"out_hidden_size":4096,"patch_size":14,"image_size":336,"spatial_merge_size":2,"temporal_patch_size":2}`},
	{"GLM-4.5V", 107710933120, "counted from the tensors of huggingface.co/zai-org/GLM-4.5V, with norms and biases", `"model_type":"glm4v_moe","text_config":{"model_type":"glm4v_moe_text","first_k_dense_replace":1,"head_dim":128,"hidden_size":4096,"intermediate_size":10944,"moe_intermediate_size":1408,"n_routed_experts":128,"n_shared_experts":1,"num_attention_heads":96,"num_experts_per_tok":8,"num_hidden_layers":46,"num_key_value_heads":8,"vocab_size":151552},"vision_config":{"model_type":"glm4v_moe","depth":24,"hidden_size":1536,"num_heads":12,"intermediate_size":10944,"out_hidden_size":4096,"patch_size":14,"image_size":336,"spatial_merge_size":2,"temporal_patch_size":2}`},
	{"LFM2-VL-1.6B", 1584804000, "safetensors total of huggingface.co/LiquidAI/LFM2-VL-1.6B", `"model_type":"lfm2_vl","downsample_factor":2,"projector_hidden_size":2560,"projector_bias":true,"text_config":{"model_type":"lfm2","block_ff_dim":12288,"block_auto_adjust_ff_dim":true,"block_multiple_of":256,"conv_L_cache":3,"full_attn_idxs":[2,5,8,10,12,14],"hidden_size":2048,"num_attention_heads":32,"num_hidden_layers":16,"num_key_value_heads":8,"vocab_size":65536},"vision_config":{"model_type":"siglip2_vision_model","hidden_size":1152,"intermediate_size":4304,"num_attention_heads":16,"num_hidden_layers":26,"num_patches":256,"patch_size":16,"vision_use_head":false}`},
	{"Step3", 316e9, "huggingface.co/stepfun-ai/step3: language model of 316 billion", `"model_type":"step3_text","hidden_size":7168,"intermediate_size":18432,"num_attention_heads":64,"num_attention_groups":1,"head_dim":256,"share_q_dim":2048,"moe_intermediate_size":5120,"moe_num_experts":48,"moe_top_k":3,"share_expert_dim":5120,"num_hidden_layers":61,"vocab_size":128815,"moe_layers_enum":"4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59"`},
	{"Solar-Open-100B", 102.6e9, "huggingface.co/upstage/Solar-Open-100B: 102.6 billion", `"model_type":"solar_open","hidden_act":"silu","hidden_size":4096,"num_hidden_layers":48,"num_attention_heads":64,"head_dim":128,"num_key_value_heads":8,"vocab_size":196608,"intermediate_size":10240,"moe_intermediate_size":1280,"n_routed_experts":128,"n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":0,"partial_rotary_factor":1.0,"tie_word_embeddings":false`},
	{"VaultGemma-1B", 1038741120, "counted from the tensors of huggingface.co/google/vaultgemma-1b, with norms", `"model_type":"vaultgemma","hidden_activation":"gelu_pytorch_tanh","hidden_size":1152,"num_hidden_layers":26,"num_attention_heads":4,"head_dim":256,"num_key_value_heads":4,"vocab_size":256000,"intermediate_size":6912,"sliding_window":512`},
	{"Youtu-LLM-2B", 1.96e9, "huggingface.co/tencent/Youtu-LLM-2B: 1.96 billion", `"model_type":"youtu_llm","hidden_act":"silu","hidden_size":2048,"num_hidden_layers":32,"num_attention_heads":16,"num_key_value_heads":16,"kv_lora_rank":512,"q_lora_rank":1536,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":128256,"intermediate_size":6144,"tie_word_embeddings":true`},
}

// The parameters of further families are those of their checkpoints within 0.1 %.
func TestFamilies(t *testing.T) {
	for _, tc := range families {
		m, _, err := Read(strings.NewReader("{" + tc.config + "}"))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if off := m.Params()/tc.params - 1; math.Abs(off) > 0.001 {
			t.Errorf("%s: %.0f parameters, %s has %.0f: off by %+.3f %%", tc.name, m.Params(), tc.source, tc.params, 100*off)
		}
	}
}

// The shapes of hybrids have the layers that the papers describe, and weights that are used several times are computed
// as often.
func TestFamilyShapes(t *testing.T) {
	for _, tc := range []struct {
		name                                  string
		layers, mixers, mlps, window, experts int
		reuse                                 float64 // parameters a token passes over those there are; 0 = 1 or experts
	}{
		{name: "LFM2-1.2B", layers: 16, mixers: 10},
		{name: "LFM2-8B-A1B", layers: 24, mixers: 18, experts: 22},
		{name: "recurrentgemma-2b", layers: 26, mixers: 18, window: 8},
		{name: "Falcon-H1-0.5B", layers: 108, mixers: 36, mlps: 36},
		{name: "Zamba2-1.2B", layers: 50, mixers: 38, mlps: 6, reuse: (1215064704 + 5*(14*2048*2048+3*2048*8192+3*2048)) / 1215064704.},
		{name: "kimi-linear", layers: 27, mixers: 20, experts: 26},
		{name: "rwkv-4-169m", layers: 12, mixers: 12},
		{name: "albert-base-v2", layers: 12, reuse: (12*7087872 + 590592 + 30000*768) / 11683584.},
		{name: "longformer-base", layers: 12, window: 12, reuse: 1 - 12*(3*768*768+3*768)/148659456.},
	} {
		for _, f := range families {
			if f.name != tc.name {
				continue
			}
			m, _, err := Read(strings.NewReader("{" + f.config + "}"))
			if err != nil {
				t.Fatal(err)
			}
			if m.Layers != tc.layers || m.SSMLayers != tc.mixers || m.MLPLayers != tc.mlps || m.WindowLayers != tc.window || m.MoELayers() != tc.experts {
				t.Errorf("%s: %+v, want %+v", tc.name, m, tc)
			}
			if tc.experts > 0 {
				continue
			}
			if tc.reuse == 0 {
				tc.reuse = 1
			}
			if got := m.ActiveParams() / m.Params(); math.Abs(got/tc.reuse-1) > 1e-3 {
				t.Errorf("%s: a token passes %.4f of the parameters, want %.4f", tc.name, got, tc.reuse)
			}
			if err := m.Validate(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Networks that no model describes are refused with the reason, also where their files have the usual fields.
func TestRefusesKnownFamilies(t *testing.T) {
	const usual = `"hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,"hidden_act":"silu"`
	for model, why := range map[string]string{"wav2vec2": "raw audio", "swin": "different widths", "gemma3n_text": "several streams", "longcat_flash": "two attentions", "jetmoe": "experts of its own",
		"nemotron-nas": "different widths", "phi4mm": "adapters", "switch_transformers": "experts", "xlnet": "two streams", "sew-d": "raw audio",
		"step3p5": "differs between layers", "hymba": "one output matrix"} {
		m, _, err := Read(strings.NewReader(`{"model_type":"` + model + `",` + usual + "}"))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), model) || m != (spec.Model{}) {
			t.Errorf("%s: %v, want %q", model, err, why)
		}
	}
	for _, act := range []string{"gelu", "relu2", "gelu_pytorch_tanh"} { // gated in some networks, not in others
		_, _, err := Read(strings.NewReader(`{"model_type":"new",` + strings.Replace(usual, "silu", act, 1) + "}"))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "how many matrices") {
			t.Errorf("hidden_act %s of an unknown network: %v", act, err)
		}
	}
}

func TestFamilyErrors(t *testing.T) {
	const usual = `"hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":100,`
	for _, tc := range []struct{ config, want string }{
		{`"model_type":"albert",` + usual + `"num_hidden_groups":5`, "num_hidden_groups=5"},
		{`"model_type":"lfm2",` + usual + `"layer_types":["conv"]`, "is not a list of 4 names"},
		{`"model_type":"lfm2",` + usual + `"x":1`, "layer_types or full_attn_idxs must be there"},
		{`"model_type":"lfm2",` + usual + `"full_attn_idxs":[1,1,1,9]`, "full_attn_idxs=[1,1,1,9] is not a list of different layers in 0..3"},
		{`"model_type":"lfm2",` + usual + `"full_attn_idxs":[-1]`, "full_attn_idxs=[-1] is not"},
		{`"model_type":"lfm2",` + usual + `"full_attn_idxs":"1"`, "is not a list of different layers"},
		{`"model_type":"lfm2",` + usual + `"layer_types":["conv","x","conv","conv"]`, `layer_types has a layer "x", want one of full_attention, conv`},
		{`"model_type":"lfm2",` + strings.Replace(usual, `"intermediate_size":128,`, "", 1) + `"full_attn_idxs":[1]`, "block_ff_dim or intermediate_size must be there"},
		{`"model_type":"recurrent_gemma",` + usual + `"block_types":["recurrent","x"]`, `block_types has a layer "x"`},
		{`"model_type":"zamba2",` + usual + `"hybrid_layer_ids":[1,1,1]`, "hybrid_layer_ids=[1,1,1] is not a list of different layers in 0..3"},
		{`"model_type":"zamba2",` + usual + `"hybrid_layer_ids":[4]`, "hybrid_layer_ids=[4] is not"},
		{`"model_type":"zamba2",` + usual + `"layers_block_type":["mamba","hybrid","x","mamba"]`, `layers_block_type has a layer "x"`},
		{`"model_type":"kimi_linear",` + usual + `"linear_attn_config":{"full_attn_layers":[4,4,4,4]}`, "full_attn_layers=[4,4,4,4] is not a list of different layers in 1..4"},
		{`"model_type":"nomic_bert","n_embd":64,"n_head":4,"n_layer":2,"vocab_size":9`, "want swiglu"},
		{`"model_type":"nomic_bert","n_embd":64,"n_head":4,"n_layer":2,"vocab_size":9,"activation_function":"swiglu","num_experts":8`, "nomic_bert with 8 experts is not known"},
		{`"model_type":"recurrent_gemma",` + usual + `"block_types":3`, "block_types=3 is not a list"},
		{`"model_type":"recurrent_gemma",` + usual + `"lru_width":65`, "a mixer of 65 channels"},
		{`"model_type":"zamba2",` + usual + `"x":1`, "hybrid_layer_ids or layers_block_type must be there"},
		{`"model_type":"zamba2",` + usual + `"hybrid_layer_ids":[1],"num_mem_blocks":2`, "1 layers use a shared block that has 2 copies"},
		{`"model_type":"kimi_linear",` + usual + `"kv_lora_rank":16`, "linear_attn_config must be there"},
		{`"model_type":"kimi_linear",` + usual + `"attn_res_block_size":12,"linear_attn_config":{"full_attn_layers":[4]}`, "attn_res_block_size changes the layers"},
		{`"model_type":"falcon_h1",` + strings.Replace(usual, ":4,", ":2000,", 1), "num_hidden_layers=2000 is more than 1365"},
		{`"model_type":"longformer",` + usual + `"x":1`, "attention_window must be there"},
		{`"model_type":"nomic_bert","n_embd":64,"n_head":4,"n_layer":2,"vocab_size":9,"activation_function":"gelu"`, "want swiglu"},
		{`"model_type":"siglip","text_config":{"model_type":"siglip_text_model"}`, "vision_config is missing"},
		{`"model_type":"siglip","text_config":{},"vision_config":{"patch_size":0}`, "patch_size=0 give no tower"},
		{`"model_type":"dinov3_vit","patch_size":500`, "image_size=224 and patch_size=500"},
	} {
		_, _, err := Read(strings.NewReader("{" + strings.TrimSuffix(tc.config, ",") + "}"))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.config, err, tc.want)
		}
	}
}

// TestBidirectional: EuroBERT has the fields of Llama, and attention to both sides.
func TestBidirectional(t *testing.T) {
	m, warnings, err := Read(strings.NewReader(`{"model_type":"eurobert","hidden_act":"silu","hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_key_value_heads":12,"num_hidden_layers":12,"vocab_size":128256}`))
	if err != nil || m.Kind != spec.Encoder || !m.GatedMLP || len(warnings) > 0 {
		t.Errorf("%+v, %v, %v", m, warnings, err)
	}
}

// TestThinker: of Qwen3-Omni the language model of its thinker is read, with a warning.
func TestThinker(t *testing.T) {
	const text = `{"model_type":"qwen3_omni_moe_text","hidden_size":2048,"head_dim":128,"moe_intermediate_size":768,"intermediate_size":768,"num_attention_heads":32,"num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":48,"num_key_value_heads":4,"vocab_size":152064}`
	m, warnings, err := Read(strings.NewReader(`{"model_type":"qwen3_omni_moe","thinker_config":{"model_type":"qwen3_omni_moe_thinker","text_config":` + text + `},"talker_config":{}}`))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "only the language model of qwen3_omni_moe is read") {
		t.Fatalf("%v, %v", warnings, err)
	}
	if off := m.Params()/30532122624 - 1; math.Abs(off) > 0.001 { // Qwen3-30B-A3B, with other tokens
		t.Errorf("%.0f parameters", m.Params())
	}
	for _, config := range []string{`{"text_config":3}`, `{}`, `3`} {
		if _, _, err := Read(strings.NewReader(`{"model_type":"qwen3_omni_moe","thinker_config":` + config + `}`)); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// TestGemma4: the parameters are those of the model cards, and the scores of wide and narrow heads are right within 2
// %.
func TestGemma4(t *testing.T) {
	types := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(strings.Repeat(`"sliding_attention",`, 5)+`"full_attention",`, n), ",")
	}
	const usual = `"head_dim":256,"global_head_dim":512,"attention_k_eq_v":true,"sliding_window":1024,"vocab_size":262144,"max_position_embeddings":262144,"hidden_size_per_layer_input":0,"num_kv_shared_layers":0,"use_double_wide_mlp":false,`
	for _, tc := range []struct {
		name, config          string
		params, active        float64 // huggingface.co/google/gemma-4-31B-it and gemma-4-26B-A4B-it
		layers, hidden, heads float64
	}{
		{"31B", `"hidden_size":5376,"intermediate_size":21504,"num_attention_heads":32,"num_key_value_heads":16,"num_global_key_value_heads":4,"num_hidden_layers":60,"num_experts":null,"layer_types":[` + types(10) + `]`, 30.7e9, 30.7e9, 60, 5376, 32},
		{"26B-A4B", `"enable_moe_block":true,"hidden_size":2816,"intermediate_size":2112,"moe_intermediate_size":704,"num_experts":128,"top_k_experts":8,"num_attention_heads":16,"num_key_value_heads":8,"num_global_key_value_heads":2,"num_hidden_layers":30,"layer_types":[` + types(5) + `]`, 25.2e9, 3.8e9, 30, 2816, 16},
	} {
		m, warnings, err := Read(strings.NewReader(`{"model_type":"gemma4","text_config":{"model_type":"gemma4_text",` + usual + tc.config + `}}`))
		if err != nil || len(warnings) != 3 {
			t.Errorf("%s: %v, %v", tc.name, warnings, err)
			continue
		}
		if off := m.Params()/tc.params - 1; math.Abs(off) > 0.002 { // the cards round to 0.05 billion
			t.Errorf("%s: %.0f parameters, want %g: off by %+.3f %%", tc.name, m.Params(), tc.params, 100*off)
		}
		if off := m.ActiveParams()/tc.active - 1; math.Abs(off) > 0.015 {
			t.Errorf("%s: %.0f parameters per token, want %g", tc.name, m.ActiveParams(), tc.active)
		}
		for _, s := range []float64{2048, 8192, 65536} {
			global, local := tc.layers/6*512*s/2, tc.layers*5/6*256*(1024-1024*1024/s/2)
			want := 12 * tc.heads * s * (global + local)
			got := m.TrainFLOPs(int(s)) - 6*m.ActiveParams()*s
			if off := got/want - 1; math.Abs(off) > 0.035 {
				t.Errorf("%s: scores of %g tokens are %.4g FLOPs, want %.4g: off by %+.2f %%", tc.name, s, got, want, 100*off)
			}
		}
	}
	for config, want := range map[string]string{`"hidden_size_per_layer_input":256`: "hidden_size_per_layer_input=256", `"sliding_window":512`: "hidden_size_per_layer_input=256",
		`"hidden_size_per_layer_input":0,"num_kv_shared_layers":20`: "num_kv_shared_layers=20"} {
		if _, _, err := Read(strings.NewReader(`{"model_type":"gemma4_text","num_hidden_layers":30,"hidden_size":1536,` + config + `}`)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

// TestPositionsOfESM: positions of esm are learned unless the file says rotary, as in transformers.
func TestPositionsOfESM(t *testing.T) {
	const config = `{"model_type":"esm","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":33,"max_position_embeddings":100`
	params := func(more string) float64 {
		m, _, err := Read(strings.NewReader(config + more + "}"))
		if err != nil {
			t.Fatal(err)
		}
		return m.Params()
	}
	rotary := params(`,"position_embedding_type":"rotary"`)
	for _, more := range []string{"", `,"position_embedding_type":"absolute"`} {
		if got := params(more) - rotary; got != 100*64 {
			t.Errorf("%q: %g parameters more than with rotary positions, want %d", more, got, 100*64)
		}
	}
}
