package huggingface

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// refused says what layers of known architectures a spec.Model cannot describe.
var refused = map[string]string{}

func init() {
	for why, types := range map[string][]string{
		"it has convolutions over raw audio before its layers, and their work is not modelled":                       {"wav2vec2", "wav2vec2-bert", "wav2vec2-conformer", "hubert", "wavlm", "unispeech", "unispeech-sat", "data2vec-audio", "sew", "sew-d", "seamless_m4t_v2"},
		"its stages have different widths and resolutions":                                                           {"convnext", "convnextv2", "swin", "swinv2", "resnet", "segformer", "mobilevit", "pvt_v2", "maxvit", "hiera", "cvt", "focalnet", "efficientnet"},
		"its layers have embeddings of their own and several streams between them":                                   {"gemma3n", "gemma3n_text"},
		"its layers have different widths":                                                                           {"openelm", "nemotron-nas", "deci"},
		"each of its layers has two attentions and a dense MLP beside experts, and some experts compute nothing":     {"longcat_flash"},
		"its attention has experts of its own":                                                                       {"jetmoe", "moduleformer"},
		"its encoder and decoder have experts":                                                                       {"switch_transformers", "nllb-moe"},
		"its encoder and decoder have configurations of their own":                                                   {"t5gemma", "t5gemma2", "encoder-decoder", "speech-encoder-decoder", "vision-encoder-decoder"},
		"its adapters for images and speech are part of the network":                                                 {"phi4mm", "phi4_multimodal"},
		"its decoder, which only pretraining has, is of another width than its encoder":                              {"vit_mae", "videomae"},
		"its layers have two streams and positions with weights":                                                     {"xlnet"},
		"its recurrence is not that of RWKV-4, and its mixes have weights that its config does not state completely": {"rwkv5", "rwkv6", "rwkv7", "rwkv6qwen2"},
		"its layers have recurrences with exponential gates":                                                         {"xlstm"},
		"the width of its attention differs between layers":                                                          {"step3p5", "mimo_v2_flash"},
		"its layers mix attention with a recurrence before one output matrix, and share keys and values":             {"hymba"},
		"its attention is linear, and its MLP has a convolution over the image":                                      {"SanaTransformer2DModel", "SanaVideoTransformer3DModel"},
		"its stages have different widths and resolutions, with convolutions":                                        {"UNet2DConditionModel", "UNet2DModel", "UNetSpatioTemporalConditionModel"},
	} {
		for _, t := range types {
			refused[t] = why
		}
	}
}

// unknown returns why an unknown architecture cannot be read as a decoder, nil if it can.
func (c *config) unknown() error {
	if why, ok := refused[c.modelType]; ok {
		return fmt.Errorf("huggingface: %w: %s cannot be described: %s; describe a network of about its layers and widths instead", ErrConfig, c.kind(), why)
	}
	if c.modelType == "" && !c.hasUsualFields() {
		return fmt.Errorf("huggingface: %w: it has no model_type, such as llama, qwen3_moe or vit", ErrConfig)
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("huggingface: %w: %s is not known, %s; %s", ErrConfig, c.kind(), fmt.Sprintf(format, args...), similar(c.modelType))
	}
	if !c.hasUsualFields() {
		return refuse("and it lacks the usual num_hidden_layers, hidden_size and num_attention_heads")
	}
	for _, key := range slices.Sorted(maps.Keys(c.fields)) {
		if mixer.MatchString(key) {
			return refuse("and its %s means layers without attention", key)
		}
		if c.value(key) != nil && shapely.MatchString(key) && !slices.Contains(usual, key) && c.shapes(key) {
			return refuse("nor what its %s does to the shape", key)
		}
	}
	if act := c.word("hidden_act"); !strings.Contains(act, "silu") && !strings.Contains(act, "swiglu") {
		return refuse("and hidden_act=%q does not say how many matrices its MLP has", act)
	}
	c.warn("architecture %q is not known: read as a decoder by its usual fields", c.modelType)
	if !c.has("tie_word_embeddings") {
		c.warn("architecture %q does not say whether it has tie_word_embeddings: taken as false", c.modelType)
	}
	return nil
}

// kind is the field that says the architecture, with its value.
func (c *config) kind() string {
	switch {
	case c.has("model_type"):
		return fmt.Sprintf("model_type %q", c.modelType)
	case c.modelType != "":
		return fmt.Sprintf("_class_name %q", c.modelType)
	}
	return "the architecture without a model_type"
}

// similar says which known architectures begin as name does, and else what to do.
func similar(name string) string {
	names := Architectures()
	n := len(names)
	names = slices.DeleteFunc(names, func(s string) bool { return len(name) < 4 || len(s) < 4 || !strings.EqualFold(s[:4], name[:4]) })
	if len(names) == 0 {
		return fmt.Sprintf("it is none of the %d known ones: describe a network of about its layers and widths instead", n)
	}
	return "known ones that begin alike: " + strings.Join(names, " ")
}

// mixer matches the names of fields of layers without attention.
var mixer = regexp.MustCompile(`^(?:mamba|ssm|linear_num|linear_attn|time_mix)`)

// shapely matches the names of fields that may change the shape of a network.
var shapely = regexp.MustCompile(`(?i)linear|dim|rank|size|width|expert|moe|layer|head|conv|block|num_|^n_|_n_|group|ratio|state|per_|depth|bucket|multiplier|kernel|mlp|ffn|cross`)

// usual are the fields that are read, or that change no shape.
var usual = []string{
	"num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size", "vocab_size", "num_nextn_predict_layers",
	"num_local_experts", "num_experts", "n_routed_experts", "num_experts_per_tok", "n_shared_experts", "num_shared_experts", "moe_intermediate_size", "first_k_dense_replace",
	"shared_expert_intermediate_size", "decoder_sparse_step", "moe_layer_freq", "mlp_only_layers", "n_group", "topk_group", "num_expert_group", "moe_router_topk_scaling_factor",
	"sliding_window", "sliding_window_size", "max_window_layers", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_eps", "rms_norm_eps", "layerdrop", "mlp_bias", "attention_bias", "mlp_dropout", "output_hidden_states",
	"num_return_sequences", "num_beams", "num_beam_groups", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "chunk_size_feed_forward", "pruned_heads", "cross_attention_hidden_size", "add_cross_attention", "num_labels", "per_channel", "mlp_layer_types",
	"max_position_embeddings", "original_max_position_embeddings", "max_seq_len", "max_sequence_length", "seq_length", "rope_scaling", "initializer_range", "attention_multiplier", "embedding_multiplier", "residual_multiplier", "logits_multiplier", "rope_parameters", "encoder_layerdrop", "decoder_layerdrop", "norm_topk_prob", "quantization_config", "text_config", "vision_config",
}

// shapes reports whether a field is a number, a list or an object that may describe a shape. A list of kinds of
// attention does not.
func (c *config) shapes(key string) bool {
	var v any
	if json.Unmarshal(c.fields[key], &v) != nil {
		return false
	}
	switch v := v.(type) {
	case float64:
		return v != 0 && !strings.HasSuffix(key, "_id") && !strings.HasSuffix(key, "_coef") && !strings.HasSuffix(key, "dropout")
	case map[string]any:
		return len(v) > 0
	case []any:
		for _, item := range v {
			if item != "full_attention" && item != "sliding_attention" {
				return true
			}
		}
	}
	return false
}
