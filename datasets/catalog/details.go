package catalog

import (
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// families are details of common models, by the beginning of their catalog names; the longest match
// wins. From the config.json published with each, and for Megatron's GPT from Narayanan et al.,
// SC21 (arXiv 2104.04473). Figures that differ within a family are left out.
var families = map[string]spec.Details{
	"Llama2-":       llama("Llama 2", 10000, 1e-5),
	"Llama3-":       llama3(),
	"Llama3.1-":     scaled(llama("Llama 3.1", 500000, 1e-5), 8),
	"Llama3.2-":     scaled(llama("Llama 3.2", 500000, 1e-5), 32),
	"LLaMA-":        llama("LLaMA", 10000, 0), // 1e-6, but 1e-5 of 65B
	"CodeLlama-":    llama("Code Llama", 1e6, 1e-5),
	"TinyLlama-":    llama("TinyLlama", 10000, 1e-5),
	"Mistral-7B":    llama("Mistral", 10000, 1e-5),
	"Mixtral-":      llama("Mixtral", 1e6, 1e-5),
	"Qwen2.5-7B":    qwen("Qwen 2.5", 1e-6, true),
	"Qwen2.5-":      qwen("Qwen 2.5", 0, true), // 1e-5 or 1e-6
	"Qwen3-":        qwen("Qwen 3", 1e-6, false),
	"DeepSeekV3":    llama("DeepSeek V3", 10000, 1e-6),
	"GPT2-":         gpt("GPT-2", "gelu_new"),
	"GPT3-":         gpt("GPT-3", "gelu"),
	"GPT-1.7B":      gpt("Megatron's GPT", "gelu"),
	"GPT-3.6B":      gpt("Megatron's GPT", "gelu"),
	"GPT-7.5B":      gpt("Megatron's GPT", "gelu"),
	"GPT-18B":       gpt("Megatron's GPT", "gelu"),
	"GPT-39B":       gpt("Megatron's GPT", "gelu"),
	"GPT-76B":       gpt("Megatron's GPT", "gelu"),
	"GPT-145B":      gpt("Megatron's GPT", "gelu"),
	"GPT-310B":      gpt("Megatron's GPT", "gelu"),
	"GPT-530B":      gpt("Megatron's GPT", "gelu"),
	"GPT-1T":        gpt("Megatron's GPT", "gelu"),
	"Megatron-22B":  gpt("Megatron's GPT", "gelu"),
	"OPT-":          gpt("OPT", "relu"),
	"BERT-":         bert("BERT", 1e-12),
	"RoBERTa-large": bert("RoBERTa", 1e-5),
}

func llama(of string, theta, eps float64) spec.Details {
	return spec.Details{Of: of, Norm: spec.RMSNorm, NormEps: eps, Activation: "silu", Positions: spec.Rotary, RopeTheta: theta}
}

func llama3() spec.Details {
	d := llama("Llama 3", 500000, 1e-5)
	d.Besides = []string{"Llama 3.1 of this size also scales rotary positions by 8; Llama 3 does not"}
	return d
}

func scaled(d spec.Details, factor float64) spec.Details {
	d.RopeScaling, d.RopeFactor = "llama3", factor
	return d
}

// qwen is for the Qwen models: the second generation has biases of queries, keys and values, the
// third has norms of queries and keys instead.
func qwen(of string, eps float64, second bool) spec.Details {
	d := llama(of, 1e6, eps)
	d.QKVBias, d.QKNorm = second, !second
	return d
}

func gpt(of, activation string) spec.Details {
	return spec.Details{Of: of, Norm: spec.LayerNorm, NormEps: 1e-5, Activation: activation, Positions: spec.Learned, LinearBias: true}
}

func bert(of string, eps float64) spec.Details {
	d := gpt(of, "gelu")
	d.NormEps = eps
	return d
}

// Details returns the properties of m besides its shape; zero Details unless m is a model of the
// catalog, by name and shape. Packing and adapters do not change them.
func Details(m spec.Model) spec.Details {
	known, err := Model(m.Plain().Name)
	if err != nil || known.Layers != m.Layers || known.Hidden != m.Hidden {
		return spec.Details{}
	}
	best := ""
	for prefix := range families {
		if strings.HasPrefix(known.Name, prefix) && len(prefix) > len(best) {
			best = prefix
		}
	}
	d := families[best]
	d.Besides = slices.Clone(d.Besides)
	return d
}
