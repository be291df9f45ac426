package catalog

import (
	"errors"
	"testing"
)

// The intended name is the first suggestion.
func TestSuggested(t *testing.T) {
	for name, want := range map[string]string{
		"gpt2": "GPT2-small", "openai-community/gpt2": "GPT2-small", "lama3-8b": "Llama3-8B", "llama3": "Llama3-8B",
		"meta-llama/Meta-Llama-3.1-8B": "Llama3-8B", "Qwen/Qwen2.5-7B-Coder": "Qwen2.5-7B", "mistralai/Mistral-7B-v0.9": "Mistral-7B", "vit-b/17": "ViT-B/16",
	} {
		_, err := ModelOnHub(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest[0] != want {
			t.Errorf("%s: %v, want %s first", name, err, want)
		}
	}
	for name, want := range map[string]string{"h1000": "H100-80GB-SXM", "nvidia h1000": "H100-80GB-SXM", "a100-80": "A100-80GB-SXM", "mi300": "MI300X"} {
		_, err := AcceleratorOf(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest[0] != want {
			t.Errorf("%s: %v, want %s first", name, err, want)
		}
	}
}

// Names may begin with a vendor or an organization.
func TestVendorNames(t *testing.T) {
	for name, want := range map[string]string{
		"meta-llama/Llama-3.1-8B": "Llama3-8B", "Qwen/Qwen2.5-7B": "Qwen2.5-7B", "meta-llama/Llama-2-7b-hf": "Llama2-7B", "ViT-B/16": "ViT-B/16", "llama3_8b": "Llama3-8B",
	} {
		if m, err := ModelOnHub(name); err != nil || m.Name != want {
			t.Errorf("%s: %s, %v, want %s", name, m.Name, err, want)
		}
	}
	for name, want := range map[string]string{"nvidia h100": "H100-80GB-SXM", "NVIDIA-A100": "A100-80GB-SXM", "amd MI300X": "MI300X"} {
		if a, err := AcceleratorOf(name); err != nil || a.Name != want {
			t.Errorf("%s: %s, %v, want %s", name, a.Name, err, want)
		}
	}
	if m, err := Model("meta-llama/Llama-3.1-8B"); err == nil {
		t.Errorf("data sets are read with the organization taken off: %s", m.Name)
	}
}

func TestWith(t *testing.T) {
	_, err := Model("llama-mino")
	var unknown *UnknownError
	if !errors.As(err, &unknown) {
		t.Fatal(err)
	}
	if got := unknown.With([]string{"llama-mini", "wholly other"}); got.Nearest[0] != "llama-mini" || len(got.Nearest) != 3 {
		t.Errorf("%v", got)
	}
	if unknown.Nearest[0] == "llama-mini" {
		t.Error("With changed what it was called on")
	}
}
