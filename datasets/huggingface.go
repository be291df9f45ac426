package datasets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrHuggingFace is wrapped by every error of HuggingFace about the content of a file.
var ErrHuggingFace = errors.New("not a usable config.json")

// ErrTokensAssumed is wrapped by the warning of HuggingFace that the file does not give the tokens
// per sample.
var ErrTokensAssumed = errors.New("the tokens of a sample are assumed")

// Bounds on the values of a config.json, an order of magnitude above the largest published
// networks.
const (
	hfMaxBytes  = 4 << 20 // of the file
	hfMaxLayers = 1 << 12
	hfMaxWidth  = 1 << 20 // hidden size, MLP width, heads, experts, ranks
	hfMaxVocab  = 1 << 24
	hfMaxTokens = 1 << 26
)

// hfMaxTrained bounds the assumed tokens per sample if the file gives only the context window:
// windows are extended after pretraining, which uses 2048 to 8192 tokens.
const hfMaxTrained = 8192

// HuggingFace reads a config.json of the transformers library as a model. Known architectures
// (HuggingFaceArchitectures) are read with their own field names, defaults and exceptions. Others
// are read as decoders, with a warning, if they have the usual fields of one; otherwise they are an
// error that names the model_type.
//
// The name is the file's "_name_or_path", else its model_type. SeqLen is the length of pretraining
// if the file gives it, at most 8192 tokens. ParamCount and ActiveParamCount stay 0, to be computed
// from the shape, unless the architecture has weights that a shape cannot express: learned
// positions, multi-head latent attention, per-layer embeddings.
//
// Assumptions come back as warnings. Sizes beyond those of any network are errors that name field
// and value.
func HuggingFace(r io.Reader) (spec.Model, []error, error) {
	top, err := decodeHF(r)
	if err != nil {
		return spec.Model{}, nil, err
	}
	c := top.language()
	arch, known := hfArchitectures[c.modelType]
	if !known {
		if err := c.unknown(); err != nil {
			return spec.Model{}, nil, err
		}
		arch = hfArch{kind: spec.Decoder, gated: strings.Contains(c.word("hidden_act"), "silu")}
	}
	m := c.model(arch)
	m.Name = cmp.Or(top.name(), c.modelType, "model")
	if c.err == nil {
		c.err = m.Validate()
	}
	if c.err != nil {
		return spec.Model{}, nil, fmt.Errorf("huggingface: %w: %w", ErrHuggingFace, c.err)
	}
	return m, c.warnings, nil
}

// HuggingFaceArchitectures lists the known values of model_type, sorted.
func HuggingFaceArchitectures() []string {
	out := make([]string, 0, len(hfArchitectures))
	for name := range hfArchitectures {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// hfConfig is the object of a config.json while it is read. It keeps the first error.
type hfConfig struct {
	modelType string
	fields    map[string]json.RawMessage
	warnings  []error
	err       error
}

func decodeHF(r io.Reader) (*hfConfig, error) {
	b, err := io.ReadAll(io.LimitReader(r, hfMaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("huggingface: %w", err)
	}
	if len(b) > hfMaxBytes {
		return nil, fmt.Errorf("huggingface: %w: more than %d MiB", ErrHuggingFace, hfMaxBytes>>20)
	}
	c := &hfConfig{}
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&c.fields); err != nil {
		return nil, fmt.Errorf("huggingface: %w: %w", ErrHuggingFace, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("huggingface: %w: there is text after the object", ErrHuggingFace)
	}
	if len(c.fields) == 0 {
		return nil, fmt.Errorf("huggingface: %w: it is empty", ErrHuggingFace)
	}
	c.modelType = c.word("model_type")
	return c, nil
}

// language returns the part for the language model; multimodal networks have an object for it.
func (c *hfConfig) language() *hfConfig {
	if c.has("hidden_size", "d_model", "n_embd") {
		return c
	}
	for _, key := range []string{"text_config", "llm_config", "language_config"} {
		sub := &hfConfig{}
		if raw, ok := c.fields[key]; !ok || json.Unmarshal(raw, &sub.fields) != nil || len(sub.fields) == 0 {
			continue
		}
		if sub.modelType = sub.word("model_type"); sub.modelType == "" {
			sub.modelType = c.modelType
		}
		if _, ok := sub.fields["tie_word_embeddings"]; !ok && c.has("tie_word_embeddings") {
			sub.fields["tie_word_embeddings"] = c.fields["tie_word_embeddings"]
		}
		sub.warn("only the language model of %s is read, from its %s: other towers are left out", c.modelType, key)
		return sub
	}
	return c
}

// unknown returns why an unknown architecture cannot be read as a decoder, nil if it can.
func (c *hfConfig) unknown() error {
	known := strings.Join(HuggingFaceArchitectures(), " ")
	switch {
	case c.modelType == "" && !c.usual():
		return fmt.Errorf("huggingface: %w: it has no model_type; the known ones are: %s", ErrHuggingFace, known)
	case !c.usual():
		return fmt.Errorf("huggingface: %w: model_type %q is not known, and it lacks the usual num_hidden_layers, hidden_size and num_attention_heads; the known ones are: %s",
			ErrHuggingFace, c.modelType, known)
	}
	for key := range c.fields {
		for _, sign := range []string{"mamba", "ssm", "linear_num", "linear_attn", "time_mix"} {
			if strings.HasPrefix(key, sign) {
				return fmt.Errorf("huggingface: %w: model_type %q is not known, and its %s means layers without attention; the known ones are: %s",
					ErrHuggingFace, c.modelType, key, known)
			}
		}
	}
	c.warn("architecture %q is not known: read as a decoder by its usual fields", c.modelType)
	return nil
}

func (c *hfConfig) usual() bool {
	return c.has("num_hidden_layers") && c.has("hidden_size") && c.has("num_attention_heads")
}

// name is the last element of _name_or_path, unless that is a local path.
func (c *hfConfig) name() string {
	path := strings.TrimRight(c.word("_name_or_path"), "/")
	if strings.HasPrefix(path, ".") || strings.Count(path, "/") > 1 {
		return ""
	}
	return path[strings.LastIndex(path, "/")+1:]
}

func (c *hfConfig) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Errorf(format, args...))
}

// has reports whether any of the fields exists and is not null.
func (c *hfConfig) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return c.value(k) != nil })
}

func (c *hfConfig) value(key string) json.RawMessage {
	raw := c.fields[key]
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil
	}
	return raw
}

// count returns the first of the fields that exists, a whole number in 0..most, or 0. Anything else
// is an error.
func (c *hfConfig) count(most int, keys ...string) int {
	for _, key := range keys {
		raw := c.value(key)
		if raw == nil {
			continue
		}
		var v float64
		if err := json.Unmarshal(raw, &v); err != nil || v != math.Trunc(v) || v < 0 || v > float64(most) {
			c.fail("%s=%s is not a whole number in 0..%d", key, truncate(raw), most)
			return 0
		}
		return int(v)
	}
	return 0
}

// ratio returns a positive number of a field, else def.
func (c *hfConfig) ratio(key string, def float64) float64 {
	raw := c.value(key)
	if raw == nil {
		return def
	}
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || !(v > 0) || v > hfMaxWidth {
		c.fail("%s=%s is not a number in 0..%d", key, truncate(raw), hfMaxWidth)
		return def
	}
	return v
}

// flag returns a boolean field, else def.
func (c *hfConfig) flag(key string, def bool) bool {
	raw := c.value(key)
	if raw == nil {
		return def
	}
	var v bool
	if json.Unmarshal(raw, &v) != nil {
		c.fail("%s=%s is not true or false", key, truncate(raw))
		return def
	}
	return v
}

// word returns a field that is text, else "".
func (c *hfConfig) word(key string) string {
	var s string
	if json.Unmarshal(c.fields[key], &s) != nil || len(s) > 256 {
		return ""
	}
	return s
}

func (c *hfConfig) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// clip shortens a value for a message.
func truncate(raw json.RawMessage) string {
	if len(raw) > 40 {
		return string(raw[:40]) + "..."
	}
	return string(raw)
}

// model reads the shape: the common fields under any of their names, then the exceptions of the
// architecture.
func (c *hfConfig) model(a hfArch) spec.Model {
	for key, v := range a.defaults {
		if !c.has(key) {
			c.fields[key] = json.RawMessage(fmt.Sprint(v))
		}
	}
	m := spec.Model{
		Kind:    a.kind,
		Layers:  c.count(hfMaxLayers, "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
		Hidden:  c.count(hfMaxWidth, "hidden_size", "n_embd", "d_model", "n_embed", "dim"),
		Heads:   c.count(hfMaxWidth, "num_attention_heads", "n_head", "n_heads", "num_heads"),
		KVHeads: c.count(hfMaxWidth, "num_key_value_heads", "num_kv_heads", "n_head_kv"),
		HeadDim: c.count(hfMaxWidth, "head_dim", "d_kv"),
		FFN:     c.count(hfMaxWidth, "intermediate_size", "ffn_dim", "n_inner", "d_ff", "ffn_hidden_size", "hidden_dim"),
		Vocab:   c.count(hfMaxVocab, "vocab_size"),
		SeqLen:  c.tokens(),

		GatedMLP:       a.gated,
		TiedEmbeddings: c.flag("tie_word_embeddings", a.tied),
	}
	if m.FFN == 0 {
		m.FFN = min(4*m.Hidden, hfMaxWidth)
	}
	c.experts(&m)
	if a.rest != nil {
		a.rest(c, &m)
	}
	if c.err == nil {
		c.check(&m)
	}
	return m
}

// check returns an error for an inconsistent shape.
func (c *hfConfig) check(m *spec.Model) {
	switch {
	case m.Layers == 0 || m.Hidden == 0 || m.Heads == 0:
		c.fail("layers=%d, hidden size=%d and heads=%d must be there and positive", m.Layers, m.Hidden, m.Heads)
	case m.HeadDim == 0 && m.Hidden%m.Heads != 0:
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
// positions, at most hfMaxTrained.
func (c *hfConfig) tokens() int {
	scaling := &hfConfig{}
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		if json.Unmarshal(c.fields[key], &scaling.fields) == nil && scaling.has("original_max_position_embeddings") {
			n := scaling.count(hfMaxTokens, "original_max_position_embeddings")
			if scaling.err != nil {
				c.fail("%s: %w", key, scaling.err)
			}
			return n
		}
	}
	n := c.count(hfMaxTokens, "original_max_position_embeddings", "max_position_embeddings", "n_positions", "n_ctx",
		"seq_length", "max_seq_len", "max_sequence_length")
	if n > hfMaxTrained {
		c.warn("%w: %d, not the %d there are positions for", ErrTokensAssumed, hfMaxTrained, n)
		n = hfMaxTrained
	}
	return n
}

// experts reads the common fields of mixtures of experts.
func (c *hfConfig) experts(m *spec.Model) {
	m.Experts = c.count(hfMaxWidth, "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
	if m.Experts <= 1 {
		m.Experts = 0
		return
	}
	m.ExpertsPerToken = c.count(hfMaxWidth, "num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_top_k")
	m.SharedExperts = c.count(hfMaxWidth, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
	if m.ExpertFFN = c.count(hfMaxWidth, "moe_intermediate_size"); m.ExpertFFN == 0 {
		m.ExpertFFN = m.FFN
	}
	m.DenseLayers = c.count(hfMaxLayers, "first_k_dense_replace", "moe_layer_start_index")
	c.sparseLayers(m)
	if shared := c.count(hfMaxWidth, "shared_expert_intermediate_size", "shared_intermediate_size"); shared > 0 && m.ExpertFFN > 0 {
		m.SharedExperts = max(int(math.Round(float64(shared)/float64(m.ExpertFFN))), 1)
		if m.SharedExperts*m.ExpertFFN != shared {
			c.warn("a shared expert of width %d is taken as %d of width %d", shared, m.SharedExperts, m.ExpertFFN)
		}
	}
}

// sparseLayers counts the dense layers of networks with experts in every n-th layer, or with a list
// of dense layers.
func (c *hfConfig) sparseLayers(m *spec.Model) {
	every := max(c.count(hfMaxLayers, "decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step", "moe_layer_interval"), 1)
	var dense []int
	if raw := c.value("mlp_only_layers"); raw != nil {
		if err := json.Unmarshal(raw, &dense); err != nil || len(dense) > m.Layers {
			c.fail("mlp_only_layers=%s is not a list of at most %d layers", truncate(raw), m.Layers)
			return
		}
	}
	left := m.Layers - m.DenseLayers
	if n := m.DenseLayers + left - left/every + len(dense); n != m.DenseLayers {
		m.DenseLayers = min(n, m.Layers)
		c.warn("the %d layers without experts are taken as the first ones", m.DenseLayers)
	}
}
