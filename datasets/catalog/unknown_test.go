package catalog

import (
	"errors"
	"strings"
	"testing"
)

// The intended name is the first suggestion.
func TestSuggested(t *testing.T) {
	for name, want := range map[string]string{
		"gpt2": "GPT2-small", "openai-community/gpt2": "GPT2-small", "lama3-8b": "Llama3-8B", "llama3": "Llama3-8B",
		"meta-llama/Meta-Llama-3.1-8B-mine": "Llama3-8B", "Qwen/Qwen2.5-7B-Code": "Qwen2.5-7B", "mistralai/Mistral-7B-Nemo": "Mistral-7B", "vit-b/17": "ViT-B/16",
	} {
		_, err := ModelOnHub(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest[0] != want {
			t.Errorf("%s: %v, want %s first", name, err, want)
		}
	}
	for name, want := range map[string]string{"h1000": "H100-80GB-SXM", "nvidia h1000": "H100-80GB-SXM", "a100-81": "A100-80GB-SXM", "mi300": "MI300X"} {
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

// Names as people write them.
func TestWrittenNames(t *testing.T) {
	for name, want := range map[string]string{
		"Llama 3.1 8B Instruct": "Llama3-8B", "8B Llama 3.1": "Llama3-8B", "qwen3 30b a3b": "Qwen3-30B-A3B", "A3B 30B Qwen3 MoE": "Qwen3-30B-A3B",
		"DeepSeek V3 671B": "DeepSeekV3", "Llama4-Maverick-17B-128E": "Llama4-Maverick", "Llama-4-Maverick-17B-128E-Instruct": "Llama4-Maverick",
		"google/gemma-2-9b-it": "Gemma2-9B", "QWEN2.5-32B-INSTRUCT": "Qwen2.5-32B", "Qwen/Qwen3-14B (w/o MTP)": "Qwen3-14B", "Nemotron_3_Super": "Nemotron-3-Super",
		"mixtral 8x7b instruct": "Mixtral-8x7B", "glm 4.5 air": "GLM-4.5-Air", "Mamba 2 2.7B": "Mamba2-2.7B", "openai/whisper-large-v3": "Whisper-large-v3",
		"Mixtral-8x7B-MoE": "Mixtral-8x7B", "black-forest-labs/FLUX.1-dev": "Flux.1-dev", "Qwen2.5-VL-7B-Instruct": "Qwen2.5-VL-7B", "DeepSeek-V2-Lite-Chat": "DeepSeek-V2-Lite",
		"meta-llama/Llama-3.3-70B-Instruct": "Llama3-70B", "deepseek-ai/DeepSeek-R1": "DeepSeekV3",
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": "Qwen2.5-32B", "Qwen/Qwen2.5-Coder-7B-Instruct": "Qwen2.5-7B", "Qwen/Qwen2-72B": "Qwen2.5-72B", "microsoft/phi-4": "Phi-4",
		"microsoft/Phi-3-mini-4k-instruct": "Phi-3-mini", "mistralai/Mistral-Small-24B-Instruct-2501": "Mistral-Small-24B", "zai-org/GLM-4.6": "GLM-4.5",
		"mistralai/Mixtral-8x7B-v0.1": "Mixtral-8x7B", "mistralai/Mixtral-8x7B-Instruct-v0.1": "Mixtral-8x7B", "Qwen/Qwen3-8B-Base": "Qwen3-8B", "deepseek-ai/DeepSeek-V3-0324": "DeepSeekV3",
		"Qwen/Qwen3-235B-A22B-Thinking-2507": "Qwen3-235B-A22B", "allenai/Olmo-3-1125-32B": "OLMo3-32B", "microsoft/Phi-4-mini-instruct": "Phi-4-mini", "deepseek-ai/DeepSeek-V2.5-1210": "DeepSeek-V2",
	} {
		if m, err := ModelOnHub(name); err != nil || m.Name != want {
			t.Errorf("%s: %s, %v, want %s", name, m.Name, err, want)
		}
	}
	for name, want := range map[string]string{
		"meta-llama/Meta-Llama-3.1-8B-Instruct": "Llama3-8B", "meta-llama/Meta-Llama-3.1-70B-Instruct": "Llama3-70B", "meta-llama/Meta-Llama-3.1-405B-Instruct": "Llama3.1-405B",
		"Llama2 70B LoRA": "Llama2-70B (lora:16)", "Llama 3 8b LoRA": "Llama3-8B (lora:16)", "Llama3-8B-QLoRA": "Llama3-8B (qlora:16)", "gpt 175b": "GPT3-175B",
		"mistral 7b v0.3": "Mistral-7B", "nvidia/Nemotron-H-8B-Base-8K": "Nemotron-H-8B", "sdxl 1.0": "SDXL", "openai/whisper-small": "Whisper-small",
		"whisper-tiny.en": "Whisper-tiny", "whisper base": "Whisper-base", "whisper_medium": "Whisper-medium", "xai-org/grok-1": "xAI-Grok-1",
		"Qwen/Qwen2-VL-7B-Instruct": "Qwen2-VL-7B", "Qwen/Qwen3-VL-30B-A3B-Instruct": "Qwen3-VL-30B-A3B", "deepseek-ai/DeepSeek-V4-Pro": "DeepSeek-V4-Pro",
	} {
		if m, err := ModelOnHub(name); err != nil || m.Name != want {
			t.Errorf("%s: %s, %v, want %s", name, m.Name, err, want)
		}
	}
	for _, name := range []string{"stabilityai/stablelm-base-alpha-7b-v2", "Gemma-2B-v2", "Llama-7B-v2"} { // other networks
		if m, err := ModelOnHub(name); err == nil {
			t.Errorf("%s: %s, want none", name, m.Name)
		}
	}
	for name, want := range map[string]string{
		"H100 SXM5 80GB": "H100-80GB-SXM", "H100 SXM5": "H100-80GB-SXM", "80GB H100 SXM": "H100-80GB-SXM", "NVIDIA H100 80GB HBM3": "H100-80GB-SXM", "rtx 5090": "RTX5090",
		"4090": "RTX4090", "RTX PRO 6000 Blackwell": "RTX-PRO-6000-Blackwell", "TPU7x": "TPU-v7x", "ironwood": "TPU-v7x", "AWS Trainium2": "Trainium2-96GB",
		"DGX H100": "H100-80GB-SXM", "DGX A100": "A100-80GB-SXM", "HGX H200": "H200-141GB-SXM", "A100-80": "A100-80GB-SXM", "A100-40": "A100-40GB-SXM", "V100-32": "V100-SXM2-32GB",
		"Huawei Ascend 910B": "Ascend-910B", "GPU H200": "H200-141GB-SXM", "NVIDIA L40": "L40", "NVIDIA GeForce RTX 3080": "RTX3080", "A30 24GB": "A30", "RTX 5080": "RTX5080", "vera rubin": "VR200",
	} {
		if a, err := AcceleratorOf(name); err != nil || a.Name != want {
			t.Errorf("%s: %s, %v, want %s", name, a.Name, err, want)
		}
	}
	for name, want := range map[string]string{
		"A100-SXM": "A100-40GB-SXM or A100-80GB-SXM", "a100 pcie": "A100-40GB-PCIe or A100-80GB-PCIe", "V100-SXM2": "V100-SXM2-16GB, V100-SXM2-32GB or",
	} {
		_, err := AcceleratorOf(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !unknown.Ambiguous || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one that names %s", name, err, want)
		}
	}
	for _, name := range []string{"Qwen2.5-7B-MoE", "Llama3-8B-MoE", "Mistral-7B-MoE", "Llama3-8B (lora:16)", "Llama3-8B (frozen embeddings)", "Llama3-8B [qlora:64:mlp]", "Llama3-8B (layers=4,ffn=8)",
		"Llama3-8B (4 layers of 128)", "Llama3-8B (LoRA:16)", "Llama3-8B (LoRA rank 16)", "Llama3-8B (LoRA)", "Llama3-8B [LoRA]", "Llama3-8B (fused QLoRA)"} {
		if m, err := ModelOnHub(name); err == nil {
			t.Errorf("%s is %s", name, m.Name)
		}
	}
	for _, name := range []string{"80GB", "SXM", "gpu", "instruct", "7B", "A100 30GB", "H100 SXM 96TB"} {
		if a, err := AcceleratorOf(name); err == nil {
			t.Errorf("%s is %s", name, a.Name)
		}
		if m, err := ModelOnHub(name); err == nil {
			t.Errorf("%s is %s", name, m.Name)
		}
	}
}

// TestFamilies: the error of a name that several entries begin with lists them, and no other.
func TestFamilies(t *testing.T) {
	for name, want := range map[string]string{
		"Whisper": "a family of several: Whisper-tiny, Whisper-base, Whisper-small, Whisper-medium, Whisper-large-v3", "Gemma 2": "a family of several: Gemma2-2B, Gemma2-9B, Gemma2-27B",
		"MiniMax": "a family of several: MiniMax-M2, MiniMax-Text-01", "Llama-4": "a family of several: Llama4-Scout, Llama4-Maverick", "Flux": "nearest: Flux.1-dev",
		"allenai/OLMo-2": "a family of several: OLMo2-7B, OLMo2-13B, OLMo2-32B", "DeepSeek-V4": "a family of several: DeepSeek-V4-Flash, DeepSeek-V4-Pro", "Grok-1": "nearest: xAI-Grok-1, ",
	} {
		_, err := ModelOnHub(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !strings.Contains(err.Error()+",", want+",") && !strings.Contains(err.Error(), want) || len(unknown.Nearest) > 3 {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	_, err := ModelOnHub("Whisper")
	var unknown *UnknownError
	if errors.As(err, &unknown); !strings.Contains(unknown.With([]string{"whisper-of-mine", "other"}).Error(), "several: whisper-of-mine, Whisper-tiny") {
		t.Error(unknown.With([]string{"whisper-of-mine", "other"}))
	}
	for name, want := range map[string]string{"V100": "V100-SXM2-32GB", "tesla v100": "", "V100-16GB": "", "H100": ""} {
		if also := AlsoMeans(name); also != want {
			t.Errorf("%s means %q too, want %q", name, also, want)
		}
	}
}
