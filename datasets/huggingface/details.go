package huggingface

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Details reads what Read leaves out of the model: norm, activation, positions and biases. It
// returns zero Details for architectures without an entry in defaultDetails. Errors wrap ErrConfig.
func Details(r io.Reader) (spec.Details, error) {
	top, err := decode(r)
	if err != nil {
		return spec.Details{}, err
	}
	c := top.language()
	d, known := defaultDetails[c.modelType]
	if !known {
		return spec.Details{}, nil
	}
	d.Of, d.Besides = c.modelType, slices.Clone(d.Besides)
	c.details(&d)
	if c.err != nil {
		return spec.Details{}, fmt.Errorf("huggingface: %w: %w", ErrConfig, c.err)
	}
	return d, nil
}

// defaultDetails is indexed by model_type: the fixed properties of an architecture's layers, and the
// defaults of the others. From the configuration_*.py and modeling_*.py of huggingface/transformers
// 4.57.
var defaultDetails = map[string]spec.Details{
	"llama":       llamaDetails(10000, 1e-6),
	"mistral":     llamaDetails(10000, 1e-6),
	"mixtral":     llamaDetails(1e6, 1e-5),
	"phi3":        llamaDetails(10000, 1e-5),
	"qwen2":       qwen2Details(),
	"qwen2_moe":   qwen2Details(),
	"qwen3":       qwen3Details(),
	"qwen3_moe":   qwen3Details(),
	"smollm3":     {Norm: spec.RMSNorm, NormEps: 1e-6, Activation: "silu", Positions: spec.Rotary, RopeTheta: 2e6, Besides: []string{"every fourth layer has no positions"}},
	"deepseek_v2": llamaDetails(10000, 1e-6),
	"deepseek_v3": llamaDetails(10000, 1e-6),
	"kimi_k2":     llamaDetails(50000, 1e-6),
	"gpt2":        {Norm: spec.LayerNorm, NormEps: 1e-5, Activation: "gelu_new", Positions: spec.Learned, LinearBias: true},
	"gpt_neox": {Norm: spec.LayerNorm, NormEps: 1e-5, Activation: "gelu", Positions: spec.Rotary, RopeTheta: 10000, RopePercent: 0.25, LinearBias: true,
		Besides: []string{"attention and MLP run side by side (use_parallel_residual)"}},
	"starcoder2": {Norm: spec.LayerNorm, NormEps: 1e-5, Activation: "gelu_pytorch_tanh", Positions: spec.Rotary, RopeTheta: 10000, LinearBias: true},
	"opt":        {Norm: spec.LayerNorm, NormEps: 1e-5, Activation: "relu", Positions: spec.Learned, LinearBias: true},
	"bloom":      {Norm: spec.LayerNorm, NormEps: 1e-5, Activation: "gelu", Positions: spec.ALiBi, LinearBias: true, Besides: []string{"the embeddings are normalized"}},
	"bert":       {Norm: spec.LayerNorm, NormEps: 1e-12, Activation: "gelu", Positions: spec.Learned, LinearBias: true},
	"roberta":    {Norm: spec.LayerNorm, NormEps: 1e-12, Activation: "gelu", Positions: spec.Learned, LinearBias: true},
}

func llamaDetails(theta, eps float64) spec.Details {
	return spec.Details{Norm: spec.RMSNorm, NormEps: eps, Activation: "silu", Positions: spec.Rotary, RopeTheta: theta}
}

func qwen2Details() spec.Details {
	d := llamaDetails(10000, 1e-6)
	d.QKVBias = true
	return d
}

func qwen3Details() spec.Details {
	d := llamaDetails(10000, 1e-6)
	d.QKNorm = true
	return d
}

// details replaces defaults with the values of the file.
func (c *config) details(d *spec.Details) {
	for _, key := range []string{"hidden_act", "hidden_activation", "activation_function"} {
		if w := c.word(key); w != "" {
			d.Activation = w
		}
	}
	for _, key := range []string{"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_epsilon"} {
		d.NormEps = c.ratio(key, d.NormEps)
	}
	switch c.modelType {
	case "qwen2_moe":
		d.QKVBias = c.flag("qkv_bias", true)
	case "starcoder2":
		d.LinearBias = c.flag("use_bias", true)
	case "opt":
		d.LinearBias = c.flag("enable_bias", true)
	case "gpt_neox":
		if !c.flag("attention_bias", true) {
			d.LinearBias = false
			d.Besides = append(d.Besides, "the MLP has biases, attention has none (attention_bias)")
		}
	default:
		c.attentionBias(d)
	}
	if d.Positions == spec.Rotary {
		c.rotary(d)
	}
	if n := c.count(maxTokens, "sliding_window"); n > 0 && c.flag("use_sliding_window", c.modelType == "mistral") {
		d.Besides = append(d.Besides, fmt.Sprintf("attention looks back %d tokens at most (sliding_window)", n))
	}
}

// attentionBias reads the biases of architectures with separate fields for attention and MLP.
func (c *config) attentionBias(d *spec.Details) {
	attention, mlp := c.flag("attention_bias", false), c.flag("mlp_bias", false)
	switch {
	case attention && mlp:
		d.LinearBias = true
	case attention:
		d.QKVBias = true
		d.Besides = append(d.Besides, "the output of attention has a bias too (attention_bias)")
	case mlp:
		d.Besides = append(d.Besides, "the MLP has biases (mlp_bias)")
	}
}

// rotary reads the rotary embedding: separate fields, in transformers 5 an object.
func (c *config) rotary(d *spec.Details) {
	theta := func(from *config, key string) {
		raw := from.value(key)
		if raw == nil {
			return
		}
		var v float64
		if err := json.Unmarshal(raw, &v); err != nil || !(v > 0 && v <= 1e12) || math.IsInf(v, 0) {
			c.fail("%s=%s is not a number in 0..1e12", key, truncate(raw))
			return
		}
		d.RopeTheta = v
	}
	theta(c, "rope_theta")
	theta(c, "rotary_emb_base") // of gpt_neox
	share := c.ratio("rotary_pct", c.ratio("partial_rotary_factor", d.RopePercent))
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		sub := &config{}
		if c.value(key) == nil || json.Unmarshal(c.value(key), &sub.fields) != nil {
			continue
		}
		theta(sub, "rope_theta")
		share = sub.ratio("partial_rotary_factor", share)
		kind := sub.word("rope_type")
		if kind == "" {
			kind = sub.word("type")
		}
		if kind != "" && kind != "default" {
			d.RopeScaling, d.RopeFactor = kind, sub.ratio("factor", 0)
		}
		if sub.err != nil {
			c.fail("%s: %w", key, sub.err)
		}
	}
	if d.RopePercent = share; share >= 1 {
		d.RopePercent = 0
	}
}
