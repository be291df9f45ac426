package catalog

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// word matches a run of letters, or a number with its unit: "llama4-17b" has the words llama, 4 and 17b.
var word = regexp.MustCompile(`[a-z]+|\d+(?:\.\d+)?[a-z]*`)

// bracketed matches a remark in brackets.
var bracketed = regexp.MustCompile(`\([^)]*\)|\[[^]]*\]`)

// variant matches brackets that say how a network differs from the entry of its name: an adapter, frozen weights, which are
// predicted for adapters only, or figures of its own.
var variant = regexp.MustCompile(`(?i)[(\[](?:[^)\]]*\b(?:q?lora|dora|frozen)\b|\w+=\d|\d+ layers of )`)

// IsVariant reports whether a name has, in brackets, an adapter, frozen weights or changed figures: it is not the catalog's
// model of the name before the brackets.
func IsVariant(name string) bool { return variant.MatchString(name) }

// adapted matches a method of fine-tuning behind a name, without a rank: "Llama 3 8B LoRA".
var adapted = regexp.MustCompile(`(?i)^(.*[^-_\s])[-_\s]+(q?lora|dora)$`)

// UsualRank is the rank of adapters that is assumed, since the rank hardly changes the step: 16, as in MLPerf Training and
// the defaults of Megatron-Bridge.
const UsualRank = 16

// SplitAdapter splits a method of fine-tuning off the name of a model: "Llama 3 8B LoRA" is lora of Llama 3 8B. "" = none.
func SplitAdapter(name string) (bare string, kind spec.AdapterKind) {
	name = strings.TrimSpace(name)
	if n := len(name) - len("ora"); n < 0 || !strings.EqualFold(name[n:], "ora") {
		return name, ""
	}
	if m := adapted.FindStringSubmatch(name); m != nil {
		return m[1], spec.AdapterKind(strings.ToLower(m[2]))
	}
	return name, ""
}

// token matches a run of letters and digits that begins with a letter, or a number with its unit: "rtx5090 32gb" has the
// tokens rtx5090 and 32gb.
var token = regexp.MustCompile(`[a-z]+[0-9a-z]*|\d+(?:\.\d+)?[a-z]*`)

// wordsOf returns the words of a name, sorted.
func wordsOf(name string) []string { return split(name, word) }

// tokensOf returns the tokens of a name, sorted.
func tokensOf(name string) []string { return split(name, token) }

// split returns the matches in a name, sorted. Generations of NVIDIA's SXM socket from 4 on are one word, since each
// belongs to one kind of device.
func split(name string, by *regexp.Regexp) []string {
	name = strings.ToLower(bracketed.ReplaceAllString(name, " "))
	for _, socket := range []string{"sxm4", "sxm5", "sxm6"} {
		name = strings.ReplaceAll(name, socket, "sxm")
	}
	found := by.FindAllString(name, -1)
	slices.Sort(found)
	return found
}

// ending matches the end of a name that does not change the shape of a network: a version, a date, a kind of training, the
// format of its weights, a length of the context. A whole number from 2 on is a generation, with a network of its own, and not a version.
var ending = regexp.MustCompile(`(?i)[-_ ](?:v0?1|v\d+(?:\.\d+)+|\d{4}|\d{1,4}k|dequantized|converted|bf16|fp16|fp8|fp4|nf4|nvfp4|int[48]|[48]-?bit|bnb|gptq|awq|gguf|unsloth|base|instruct|chat|it|hf|sft|thinking|reasoning)$`)

// remarks are words that do not say which network or device is meant.
var remarks = []string{"meta", "instruct", "chat", "it", "hf", "model", "pretrain", "pretrained", "pretraining", "preview", "sft",
	"bf16", "fp16", "fp8", "gpu", "gpus", "nvidia", "tesla", "geforce"}

func withoutRemarks(words []string) []string {
	var out []string
	for i, w := range words {
		if !slices.Contains(remarks, w) && (i == 0 || w != words[i-1]) {
			out = append(out, w)
		}
	}
	return out
}

// sameWords reports whether a name has the words of an entry, in any order.
func sameWords(name []string, s *spelling) bool { return len(name) > 1 && slices.Equal(name, s.words) }

// someWords reports whether all tokens of a name are among the tokens and words of an entry, and one of them is more
// than a size or a socket: "a100 sxm" means the entries with both.
func someWords(name []string, s *spelling) bool {
	telling := false
	for _, w := range name {
		if !slices.Contains(s.words, w) {
			return false
		}
		telling = telling || isType(w)
	}
	return telling
}

// detail matches a token that is not the type of a device: memory, power, socket or generation.
var detail = regexp.MustCompile(`^(\d+(gb|w)?|(sxm|hbm|gddr|gen|nvlink)\d.*)$`)

// isType reports whether a token may be the type of a device, such as a100 or 4090.
func isType(w string) bool {
	return strings.ContainsAny(w, "0123456789") && (!detail.MatchString(w) || len(w) == 4 && strings.Trim(w, "0123456789") == "")
}
