package launch

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestDetails: details of a network become flags, and notes where there is no flag.
func TestDetails(t *testing.T) {
	qwen := spec.Details{Of: "qwen2", Norm: spec.RMSNorm, NormEps: 1e-6, Activation: "silu", Positions: spec.Rotary, RopeTheta: 1e6, QKVBias: true}
	stretched := spec.Details{Of: "llama", Norm: spec.RMSNorm, NormEps: 1e-5, Activation: "silu", Positions: spec.Rotary, RopeTheta: 5e5, RopeScaling: "llama3", RopeFactor: 8}
	yarn := spec.Details{Of: "qwen3", Norm: spec.RMSNorm, Activation: "silu", Positions: spec.Rotary, RopeTheta: 1e6, RopeScaling: "yarn", RopeFactor: 4, QKNorm: true}
	opt := spec.Details{Of: "opt", Norm: spec.LayerNorm, NormEps: 1e-5, Activation: "relu", Positions: spec.Learned, LinearBias: true}
	bloom := spec.Details{Of: "bloom", Norm: spec.LayerNorm, NormEps: 1e-5, Activation: "gelu", Positions: spec.ALiBi, LinearBias: true}
	for _, tc := range []struct {
		framework, model string
		details          spec.Details
		has, lacks       []string
		notes            string
	}{
		{"megatron", "Llama2-7B", qwen, []string{"--add-qkv-bias\n", "--disable-bias-linear\n", "--rotary-base 1000000\n", "--norm-epsilon 1e-06\n"}, []string{"--qk-layernorm"}, ""},
		{"megatron", "Llama2-7B", stretched, []string{"--rotary-base 500000\n", "--use-rope-scaling\n", "--rope-scaling-factor 8\n"}, []string{"--add-qkv-bias"}, ""},
		{"megatron", "Llama2-7B", yarn, []string{"--qk-layernorm\n"}, []string{"--use-rope-scaling", "--norm-epsilon"}, "check --norm-epsilon"},
		{"megatron", "Llama2-7B", yarn, nil, nil, `are stretched by "yarn", factor 4, for which MODEL has no flag`},
		{"megatron", "GPT3-5B", opt, nil, []string{"--disable-bias-linear", "--swiglu", "--position-embedding-type"}, "the activation of opt is relu"},
		{"megatron", "GPT3-5B", bloom, []string{"--position-embedding-type none\n"}, []string{"--rotary-base"}, "has ALiBi"},
		{"megatron", "Llama2-7B", spec.Details{}, []string{"--swiglu\n"}, []string{"--rotary-base"}, "check --swiglu, --normalization, --norm-epsilon (1e-5 unless given), --disable-bias-linear, --add-qkv-bias, --qk-layernorm, --position-embedding-type and --rotary-base"},
		{"torchtitan", "Llama2-7B", qwen, []string{"rope_theta=1000000, norm_eps=1e-06\n", "ffn_dim_multiplier=None, multiple_of=256 "}, nil, "qwen2 has biases of queries, keys and values, llama3 has none"},
		{"torchtitan", "Llama2-7B", stretched, nil, nil, "rope_scaling_args has scaling_factor=8"},
		{"torchtitan", "Llama2-7B", spec.Details{}, nil, []string{"rope_theta"}, "check rope_theta (10000 unless given)"},
	} {
		f, err := Lookup(tc.framework)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.EmitWith(config(t, tc.model, "H100", "8", "dp=8,zero=3,precision=bf16"), Options{Details: tc.details})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.has {
			if !strings.Contains(s.Text, want) {
				t.Errorf("%s of %s lacks %q:\n%s", tc.framework, tc.details.Of, want, s.Text)
			}
		}
		for _, not := range tc.lacks {
			if strings.Contains(s.Text, not) {
				t.Errorf("%s of %s has %q", tc.framework, tc.details.Of, not)
			}
		}
		if !slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, tc.notes) }) {
			t.Errorf("%s of %s: notes %q lack %q", tc.framework, tc.details.Of, s.Notes, tc.notes)
		}
	}
}

// TestFileIsNamed: the notes start the file that was written.
func TestFileIsNamed(t *testing.T) {
	for framework, want := range map[string]string{"torchtitan": "CONFIG_FILE='my jobs/mine.toml' ", "deepspeed": "--deepspeed_config 'my jobs/mine.toml'"} {
		f, err := Lookup(framework)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.EmitWith(config(t, "Llama3-8B", "H100", "8", "dp=8,zero=3,precision=bf16"), Options{File: "my jobs/mine.toml"})
		if err != nil || s.File != "my jobs/mine.toml" || !strings.Contains(strings.Join(s.Notes, "\n"), want) {
			t.Errorf("%s: %q, %v", framework, s.Notes, err)
		}
	}
}

// TestTitanWidth: by llama3's arithmetic, the arguments written have the width.
func TestTitanWidth(t *testing.T) {
	for _, tc := range []struct {
		dim, ffn int
		want     string
		multiple int
	}{{4096, 11008, "None", 256}, {4096, 14336, "1.3", 1024}, {8192, 28672, "1.3", 1024}, {3584, 18944, "1.96", 512}} {
		if got, multiple, ok := titanWidth(tc.dim, tc.ffn); !ok || got != tc.want || multiple != tc.multiple {
			t.Errorf("width %d of %d: %s, %d, want %s, %d", tc.ffn, tc.dim, got, multiple, tc.want, tc.multiple)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		dim, ffn := rapid.IntRange(1, 1<<20).Draw(t, "dim"), rapid.IntRange(1, 1<<20).Draw(t, "ffn")
		text, multiple, ok := titanWidth(dim, ffn)
		if !ok {
			t.Fatalf("no width %d of %d", ffn, dim)
		}
		hidden := 8 * dim / 3
		if text != "None" {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			hidden = int(v * float64(hidden))
		}
		if got := multiple * ((hidden + multiple - 1) / multiple); got != ffn {
			t.Fatalf("ffn_dim_multiplier=%s, multiple_of=%d of %d: %d, want %d", text, multiple, dim, got, ffn)
		}
	})
}
