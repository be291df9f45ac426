package huggingface

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrConfig is wrapped by every error about the content of a file.
var ErrConfig = errors.New("not a usable config.json")

// ErrTokensAssumed is wrapped by the warning of Read that the tokens per sample are an assumption,
// because the file gives only the context window.
var ErrTokensAssumed = errors.New("the tokens of a sample are assumed")

// Bounds on the values of a config.json, an order of magnitude above the largest published
// networks.
const (
	maxBytes  = 4 << 20 // of the file
	maxLayers = 1 << 12
	maxWidth  = 1 << 20 // hidden size, MLP width, heads, experts, ranks
	maxVocab  = 1 << 24
	maxTokens = 1 << 26
)

// maxTrained bounds the assumed tokens per sample if the file gives only the context window:
// windows are extended after pretraining, which uses 2048 to 8192 tokens.
const maxTrained = 8192

// Read reads a config.json of the transformers library as a model. Known architectures
// (Architectures) are read with their own field names, defaults and exceptions. Others
// are read as decoders, with a warning, if they have the usual fields of one and no others about their
// shape; otherwise they are an error that names the model_type.
//
// The name is the file's "_name_or_path", else its model_type. SeqLen is the length of pretraining
// if the file gives it, at most 8192 tokens. ParamCount and ActiveParamCount stay 0, to be computed
// from the shape, unless the architecture has weights that a shape cannot express: learned
// positions, multi-head latent attention, per-layer embeddings.
//
// Assumptions come back as warnings. Sizes beyond those of any network are errors that name field
// and value.
func Read(r io.Reader) (spec.Model, []error, error) {
	top, err := decode(r)
	if err != nil {
		return spec.Model{}, nil, err
	}
	c := top.language()
	a, known := architectures[c.modelType]
	if !known {
		if err := c.unknown(); err != nil {
			return spec.Model{}, nil, err
		}
		a = arch{kind: spec.Decoder, gated: true}
	}
	m := c.model(a)
	if c.outer != nil && c.err == nil {
		if top.tower(&m) {
			c.warnings = append(c.warnings, top.warnings...)
		} else {
			c.warn("only the language model of %s is read: other towers are left out", top.modelType)
		}
	}
	m.Name = cmp.Or(top.name(), c.modelType, "model")
	if c.err == nil {
		c.err = m.Validate()
	}
	if c.err != nil {
		return spec.Model{}, nil, fmt.Errorf("huggingface: %w: %w", ErrConfig, c.err)
	}
	return m, c.warnings, nil
}

// Architectures lists the known values of model_type, sorted without regard to case.
func Architectures() []string {
	return slices.SortedFunc(maps.Keys(architectures), func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
}

func (c *config) hasUsualFields() bool {
	return c.has("num_hidden_layers") && c.has("hidden_size") && c.has("num_attention_heads")
}

// model reads the shape: the common fields under any of their names, then the exceptions of the
// architecture.
func (c *config) model(a arch) spec.Model {
	for key, v := range a.defaults {
		if !c.has(key) {
			c.set(key, v)
		}
	}
	m := spec.Model{
		Kind:    a.kind,
		Layers:  c.count(maxLayers, "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
		Hidden:  c.count(maxWidth, "hidden_size", "n_embd", "d_model", "n_embed", "dim"),
		Heads:   c.count(maxWidth, "num_attention_heads", "n_head", "n_heads", "num_heads"),
		KVHeads: c.count(maxWidth, "num_key_value_heads", "num_kv_heads", "n_head_kv"),
		HeadDim: c.count(maxWidth, "head_dim", "d_kv"),
		FFN:     c.count(maxWidth, "intermediate_size", "ffn_dim", "n_inner", "d_ff", "ffn_hidden_size", "hidden_dim"),
		Vocab:   c.count(maxVocab, "vocab_size"),
		SeqLen:  c.tokens(),

		GatedMLP:       a.gated,
		TiedEmbeddings: c.flag("tie_word_embeddings", a.tied),
	}
	if m.FFN == 0 {
		m.FFN = min(4*m.Hidden, maxWidth)
	}
	m.MTPLayers = c.count(maxLayers, "num_nextn_predict_layers", "mtp_num_layers", "mtp_num_hidden_layers")
	c.experts(&m)
	if a.adjust != nil {
		a.adjust(c, &m)
	}
	c.windows(a, &m)
	if c.err == nil {
		c.check(&m)
	}
	return m
}

// check returns an error for an inconsistent shape.
func (c *config) check(m *spec.Model) {
	switch {
	case m.Layers == 0 || m.Hidden == 0 || m.Heads == 0 && m.AttentionLayers() > 0:
		c.fail("layers=%d, hidden size=%d and heads=%d must be there and positive", m.Layers, m.Hidden, m.Heads)
	case m.HeadDim == 0 && m.Heads > 0 && m.Hidden%m.Heads != 0:
		c.fail("%d heads do not divide a hidden size of %d, and there is no head_dim", m.Heads, m.Hidden)
	case m.KVHeads > m.Heads || m.KVHeads > 0 && m.Heads%m.KVHeads != 0:
		c.fail("%d key/value heads do not divide %d heads", m.KVHeads, m.Heads)
	case m.DenseLayers > m.Layers:
		c.fail("%d of %d layers are dense", m.DenseLayers, m.Layers)
	case m.Vocab == 0 && m.Kind != spec.Vision:
		c.fail("vocab_size is missing or 0")
	}
}

// tokens returns the tokens per sample: of pretraining if the file gives them, else the number of
// positions, at most maxTrained.
func (c *config) tokens() int {
	scaling := &config{}
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		if json.Unmarshal(c.fields[key], &scaling.fields) == nil && scaling.has("original_max_position_embeddings") {
			n := scaling.count(maxTokens, "original_max_position_embeddings")
			if scaling.err != nil {
				c.fail("%s: %w", key, scaling.err)
			}
			return n
		}
	}
	n := c.count(maxTokens, "original_max_position_embeddings", "max_position_embeddings", "n_positions", "n_ctx",
		"seq_length", "max_seq_len", "max_sequence_length")
	if n > maxTrained {
		c.warn("%w: %d, not the %d there are positions for", ErrTokensAssumed, maxTrained, n)
		n = maxTrained
	}
	return n
}

// experts reads the common fields of mixtures of experts.
func (c *config) experts(m *spec.Model) {
	m.Experts = c.count(maxWidth, "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
	if m.Experts <= 1 {
		m.Experts = 0
		return
	}
	m.ExpertsPerToken = c.count(maxWidth, "num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k", "top_k_experts")
	m.SharedExperts = c.count(maxWidth, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
	if m.ExpertFFN = c.count(maxWidth, "moe_intermediate_size"); m.ExpertFFN == 0 {
		m.ExpertFFN = m.FFN
	}
	m.DenseLayers = c.count(maxLayers, "first_k_dense_replace", "moe_layer_start_index", "moe_layer_num_skipped", "num_dense_layers")
	c.sparseLayers(m)
	m.NodeLimit = c.nodeLimit()
	if shared := c.count(maxWidth, "shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim"); shared > 0 && m.ExpertFFN > 0 {
		m.SharedExperts = max(int(math.Round(float64(shared)/float64(m.ExpertFFN))), 1)
		if m.SharedExperts*m.ExpertFFN != shared {
			c.warn("a shared expert of width %d is taken as %d of width %d", shared, m.SharedExperts, m.ExpertFFN)
		}
	}
}

// nodeLimit returns the groups of experts from which those of a token are at most, 0 if from all. DeepSeek-V2 and V3 are
// trained with the experts of a group on one node.
func (c *config) nodeLimit() int {
	groups, chosen := c.count(maxWidth, "n_group", "num_expert_group"), c.count(maxWidth, "topk_group")
	if chosen >= groups || c.word("topk_method") == "greedy" {
		return 0
	}
	return chosen
}

// sparseLayers counts the dense layers of networks with experts in every n-th layer, or with a list
// of dense layers.
func (c *config) sparseLayers(m *spec.Model) {
	every := max(c.count(maxLayers, "decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step", "moe_layer_interval"), 1)
	var dense []int
	if raw := c.value("mlp_only_layers"); raw != nil {
		if err := json.Unmarshal(raw, &dense); err != nil || len(dense) > m.Layers {
			c.fail("mlp_only_layers=%s is not a list of at most %d layers", truncate(raw), m.Layers)
			return
		}
	}
	left := m.Layers - m.DenseLayers
	n := m.DenseLayers + left - left/every + len(dense)
	switch {
	case n == m.DenseLayers:
		return
	case n == m.Layers-left/every && left == m.Layers:
		m.MoEEvery = every
	default:
		c.warn("the %d layers without experts are taken as the first ones", min(n, m.Layers))
	}
	m.DenseLayers = min(n, m.Layers)
}
