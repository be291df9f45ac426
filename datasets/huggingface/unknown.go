package huggingface

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// unknown returns why an unknown architecture cannot be read as a decoder, nil if it can.
func (c *config) unknown() error {
	known := strings.Join(Architectures(), " ")
	switch {
	case c.modelType == "" && !c.hasUsualFields():
		return fmt.Errorf("huggingface: %w: it has no model_type; the known ones are: %s", ErrConfig, known)
	case !c.hasUsualFields():
		return fmt.Errorf("huggingface: %w: model_type %q is not known, and it lacks the usual num_hidden_layers, hidden_size and num_attention_heads; the known ones are: %s",
			ErrConfig, c.modelType, known)
	}
	for _, key := range slices.Sorted(maps.Keys(c.fields)) {
		if mixer.MatchString(key) {
			return fmt.Errorf("huggingface: %w: model_type %q is not known, and its %s means layers without attention; the known ones are: %s", ErrConfig, c.modelType, key, known)
		}
		if c.value(key) != nil && shapely.MatchString(key) && !slices.Contains(usual, key) && c.shapes(key) {
			return fmt.Errorf("huggingface: %w: model_type %q is not known, nor what its %s does to the shape; the known ones are: %s", ErrConfig, c.modelType, key, known)
		}
	}
	if c.word("hidden_act") == "" && c.word("hidden_activation") == "" && c.word("activation_function") == "" {
		return fmt.Errorf("huggingface: %w: model_type %q is not known, and no hidden_act says how many matrices its MLP has; the known ones are: %s", ErrConfig, c.modelType, known)
	}
	c.warn("architecture %q is not known: read as a decoder by its usual fields", c.modelType)
	return nil
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

// shapes reports whether a field is a number, a list or an object that may describe a shape. A list of kinds of attention
// does not.
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
