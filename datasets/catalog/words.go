package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// word matches a run of letters, or a number with its unit: "llama4-17b" has the words llama, 4 and 17b.
var word = regexp.MustCompile(`[a-z]+|\d+(?:\.\d+)?[a-z]*`)

// bracketed matches a remark in brackets.
var bracketed = regexp.MustCompile(`\([^)]*\)|\[[^]]*\]`)

// wordsOf returns the words of a name, sorted. Generations of NVIDIA's SXM socket from 4 on are one word, since each
// belongs to one kind of device.
func wordsOf(name string) []string {
	name = strings.ToLower(bracketed.ReplaceAllString(name, " "))
	for _, socket := range []string{"sxm4", "sxm5", "sxm6"} {
		name = strings.ReplaceAll(name, socket, "sxm")
	}
	words := word.FindAllString(name, -1)
	slices.Sort(words)
	return words
}

// remarks are words that do not say which network or device is meant.
var remarks = []string{"instruct", "chat", "it", "hf", "model", "moe", "pretrain", "pretrained", "pretraining", "preview", "sft",
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
func sameWords(name, entry []string) bool {
	return len(name) > 1 && slices.Equal(name, slices.Compact(slices.Clone(entry)))
}

// someWords reports whether all words of a name are in an entry, and one of them says more than a size or a socket:
// "a100 sxm" means the entries with these words.
func someWords(name, entry []string) bool {
	telling := false
	for _, w := range name {
		if !slices.Contains(entry, w) {
			return false
		}
		telling = telling || len(w) > 2 && w[0] >= '0' && w[0] <= '9' && !strings.HasSuffix(w, "gb") && !strings.HasSuffix(w, "w")
	}
	return telling
}
