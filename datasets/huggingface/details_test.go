package huggingface

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func TestDetails(t *testing.T) {
	const shape = `"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100`
	for _, tc := range []struct {
		says string
		want spec.Details
	}{
		{`"model_type": "qwen2", "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "sliding_window": 131072, "use_sliding_window": false`,
			spec.Details{Of: "qwen2", Norm: spec.RMSNorm, NormEps: 1e-5, Activation: "silu", Positions: spec.Rotary, RopeTheta: 1e6, QKVBias: true}},
		{`"model_type": "llama", "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "rope_scaling": {"factor": 8.0, "rope_type": "llama3", "original_max_position_embeddings": 8192}`,
			spec.Details{Of: "llama", Norm: spec.RMSNorm, NormEps: 1e-5, Activation: "silu", Positions: spec.Rotary, RopeTheta: 5e5, RopeScaling: "llama3", RopeFactor: 8}},
		{`"model_type": "qwen3", "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"}`,
			spec.Details{Of: "qwen3", Norm: spec.RMSNorm, NormEps: 1e-6, Activation: "silu", Positions: spec.Rotary, RopeTheta: 1e6, QKNorm: true}},
		{`"model_type": "llama", "attention_bias": true`,
			spec.Details{Of: "llama", Norm: spec.RMSNorm, NormEps: 1e-6, Activation: "silu", Positions: spec.Rotary, RopeTheta: 10000, QKVBias: true,
				Besides: []string{"the output of attention has a bias too (attention_bias)"}}},
		{`"model_type": "gpt_neox", "rotary_pct": 0.5, "rotary_emb_base": 20000`,
			spec.Details{Of: "gpt_neox", Norm: spec.LayerNorm, NormEps: 1e-5, Activation: "gelu", Positions: spec.Rotary, RopeTheta: 20000, RopePercent: 0.5, LinearBias: true,
				Besides: []string{"attention and MLP run side by side (use_parallel_residual)"}}},
		{`"model_type": "mistral", "sliding_window": 4096`,
			spec.Details{Of: "mistral", Norm: spec.RMSNorm, NormEps: 1e-6, Activation: "silu", Positions: spec.Rotary, RopeTheta: 10000,
				Besides: []string{"attention looks back 4096 tokens at most (sliding_window)"}}},
		{`"model_type": "gemma2"`, spec.Details{}},
	} {
		got, err := Details(strings.NewReader("{" + tc.says + ", " + shape + "}"))
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", tc.says, got, err, tc.want)
		}
	}
	for _, bad := range []string{`"rope_theta": -1`, `"rope_theta": "big"`, `"rms_norm_eps": 0`, `"attention_bias": 3`, `"rope_scaling": {"type": "linear", "factor": -2}`} {
		if _, err := Details(strings.NewReader(`{"model_type": "llama", ` + bad + ", " + shape + "}")); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
