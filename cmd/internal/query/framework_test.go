package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// frameworkResolver has one stored row, of a training stack and on an accelerator that only it knows.
func frameworkResolver(t *testing.T, framework string) *Resolver {
	t.Helper()
	row := spec.Measurement{Outcome: spec.OK, StepSec: []float64{1}, Source: "ours", Config: spec.Config{
		Model: spec.Model{Name: "ours", Kind: spec.Decoder, Layers: 2, Hidden: 64, Heads: 2, FFN: 256, Vocab: 100, SeqLen: 64}, SeqLen: 64,
		Plan: spec.Plan{DP: 2, MicroBatch: 1, AccumSteps: 1, Precision: spec.BF16}, Accelerator: spec.Accelerator{Name: "X1", MemBytes: 1e10, MemBps: 1e12, FP16: 1e14},
		Shape: spec.NewShape(2), Framework: framework,
	}}
	return resolverOf(t, row)
}

// TestFrameworkText: name, release, parts and date become one text, whatever form they have in the request.
func TestFrameworkText(t *testing.T) {
	for _, c := range []struct{ stored, framework, parts, date, want string }{
		{"", "", "", "", ""},
		{"", "mcore", "", "", "Megatron Core"},
		{"", "megatron_core@0.13", "", "2023", "Megatron Core@0.13"},
		{"", "DeepSpeed", "", "2024-07-29", "DeepSpeed@..2024-07"},
		{"", "", "", "2024", "@..2024-12"},
		{"", "FSDP launch=eager", "launch=fused attention=flash", "", "FSDP attention=flash launch=fused"},
		{"", "", "launch=eager", "", "launch=eager"},
		{"Our Stack", "our stack", "", "", "Our Stack"},
		{"Our Stack", "", "", "", "Our Stack"},
		{"Our Stack", "", "launch=eager", "", "Our Stack launch=eager"},
		{"MCore", "Megatron-Core", "", "", "MCore"}, // as a model fitted to the rows knows it
		{"MCore", "", "loss=fused", "", "Megatron Core loss=fused"},
		{"", "DeepSpeed", "launch=eager", "2022", "DeepSpeed@..2022-12 launch=eager"},
	} {
		r := frameworkResolver(t, c.stored)
		got, err := r.Resolve(t.Context(), Request{Model: "ours", Accelerator: "X1", Framework: c.framework, Stack: c.parts, Date: c.date})
		if err != nil || got.Framework != c.want {
			t.Errorf("%+v: %q, %v", c, got.Framework, err)
		}
	}
}

// TestFrameworkErrors: errors name the field, its value, what is wanted and what is nearest.
func TestFrameworkErrors(t *testing.T) {
	r := frameworkResolver(t, "Our Stack@new")
	for _, c := range []struct{ framework, parts, date, want string }{
		{"mcor", "", "", `framework "mcor" is not a known training stack; the nearest is Megatron Core.`},
		{"nosuch", "", "", `framework "nosuch" is not a known training stack. pacer ls stacks lists them`},
		{"FSDP@latest", "", "", `framework "FSDP@latest": want a version, such as 0.13, or a date`},
		{"FSDP lunch=eager", "", "", `framework "FSDP lunch=eager": part "lunch" is not one of attention, `},
		{"FSDP", "launch=eagre", "", `stack "launch=eagre": want launch to be one of eager, fused, compiled, graphs, blocking; did you mean eager?`},
		{"FSDP launch=eagr", "", "", `framework "FSDP launch=eagr": want launch to be one of eager, fused, compiled, graphs, blocking; did you mean eager?`},
		{"FSDP", "tp=none eager", "", `stack "eager": want PART=VALUE, such as launch=eager`},
		{"FSDP", "", "next year", `date "next year": want YYYY, YYYY-MM or YYYY-MM-DD`},
		{"", "launch=eager", "", `framework is missing: that of the measurements, "Our Stack@new", is not a training stack: want a version, such as 0.13, or a date`},
	} {
		_, err := r.Resolve(t.Context(), Request{Model: "ours", Accelerator: "X1", Framework: c.framework, Stack: c.parts, Date: c.date})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || !errors.As(err, new(*FieldError)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestAssumeStackOf: launch files are for the stack that is predicted, unless the request names another.
func TestAssumeStackOf(t *testing.T) {
	for _, c := range []struct{ framework, emit, want string }{
		{"", "megatron", "Megatron Core@0.15"}, {"FSDP", "torchrun", "FSDP"}, {"FSDP", "", "FSDP"}, {"", "", ""},
	} {
		q := Request{Framework: c.framework}
		if err := q.AssumeStackOf(c.emit); err != nil || q.Framework != c.want {
			t.Errorf("%+v: %q, %v", c, q.Framework, err)
		}
	}
	q := Request{}
	if err := q.AssumeStackOf("megatronn"); !errors.As(err, new(*FieldError)) || !strings.Contains(err.Error(), "megatron") {
		t.Error(err)
	}
}
