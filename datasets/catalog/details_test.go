package catalog

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func TestDetails(t *testing.T) {
	for prefix := range families {
		if i := indexOf(func(m spec.Model) bool { return strings.HasPrefix(m.Name, prefix) }); i < 0 {
			t.Errorf("no model is called %s...", prefix)
		}
	}
	for _, tc := range []struct {
		name  string
		of    string
		theta float64
		eps   float64
		bias  bool
	}{{"llama3-8b", "Llama 3", 5e5, 1e-5, false}, {"qwen2.5-7b", "Qwen 2.5", 1e6, 1e-6, true}, {"qwen2.5-72b", "Qwen 2.5", 1e6, 0, true}, {"gpt3", "GPT-3", 0, 1e-5, false}, {"Falcon-7B", "", 0, 0, false}} {
		m, err := Model(tc.name)
		if err != nil {
			t.Fatal(err)
		}
		if d := Details(m); d.Of != tc.of || d.RopeTheta != tc.theta || d.NormEps != tc.eps || d.QKVBias != tc.bias {
			t.Errorf("%s: %+v", tc.name, d)
		}
	}
	m, err := Model("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	lora, err := spec.ParseAdapter("lora:16")
	if err != nil {
		t.Fatal(err)
	}
	for _, tuned := range []spec.Model{m.WithPacked(1000), m.Adapted(lora), m.Adapted(lora).WithPacked(1000)} {
		if d := Details(tuned); d.Of != "Llama 3" || d.RopeTheta != 5e5 {
			t.Errorf("%s: %+v", tuned.Name, d)
		}
	}
	m.Layers = 2
	if d := Details(m); d.Known() {
		t.Errorf("another model of its name has %+v", d)
	}
}

func indexOf(is func(spec.Model) bool) int {
	for i, e := range Models() {
		if is(e.Model) {
			return i
		}
	}
	return -1
}
