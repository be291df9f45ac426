package datasets

import (
	"regexp"
	"strconv"
	"strings"
)

// recipe is a part of what a source's recipes state: parts of the training stack of rows with words in their text (recipeText).
type recipe struct {
	words *regexp.Regexp
	parts string
	fsdp  int // devices that share the training state by FSDP, 0 = by ZeRO-1
}

// recipes reads lines of a regular expression, tabs, parts, and the devices of FSDP after another tab. The first line that fits a
// row counts.
func recipes(lines string) (out []recipe) {
	for line := range strings.Lines(lines) {
		words, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if words == "" {
			continue
		}
		parts, devices, _ := strings.Cut(rest, "\t")
		n, _ := strconv.Atoi(devices)
		out = append(out, recipe{regexp.MustCompile(words), strings.TrimSpace(parts), n})
	}
	return out
}

// bridgeRecipes are the recipes behind the performance summary of Megatron-Bridge (scripts/performance/configs and
// src/megatron/bridge/perf_recipes, several commits from October 2025 to August 2026; notes of releases 0.5.0 and 0.5.1).
// They state recompute_modules, moe_flex_dispatcher_backend, and moe_a2a_overlap, the overlap of all-to-alls with another
// micro-batch. From 26.06 on, gated experts in mxfp8 on Blackwell have CUDA graphs of whole iterations and that overlap; other
// models have neither. Nemotron 3 Ultra is sharded by FSDP in each NVLink domain. Rows with "tokendrop" fill experts to a fixed
// capacity, so that the host waits for no counts of tokens.
var bridgeRecipes = recipes(`
	\(tokendrop\)	routing=graphs dispatch=all-to-all

	^DeepSeekV3.* H100	recompute=mla_up_proj+mlp routing=fused ep=none
	^DeepSeekV3.* mb=2 .*release=26\.06	recompute=mla_up_proj routing=fused ep=none
	^DeepSeekV3.* GB300 .*release=26\.0[68]
	^DeepSeekV3.* GB200 .*release=26\.0[68]	recompute=mla_up_proj
	^DeepSeekV3.* GB200 mxfp8 .*release=26	recompute=mlp
	^DeepSeekV3.* GB200 fp8-mx	recompute=mla_up_proj+mlp
	^DeepSeekV3.* B200 .*pp=8 .*ep=32	recompute=mla_up_proj+mlp ep=backward
	^DeepSeekV3	recompute=mla_up_proj
	^Kimi_K2	recompute=mla_up_proj routing=fused ep=none

	^GPT OSS 120B B300 .*release=26\.0[68]	routing=fused
	^GPT OSS 120B G?B[23]00 .*release=26\.0[68]
	^GPT OSS 120B B300 .*ep=8
	^GPT OSS 120B G?B300	dispatch=all-to-all
	^GPT OSS 120B	recompute=layernorm+moe_act dispatch=all-to-all

	^Qwen3_235B_a22B.* (GB300|GB200)
	^Qwen3_235B_a22B.* H100	dispatch=all-to-all ep=backward
	^Qwen3_235B_a22B.* B300 .*vpp=4	dispatch=all-to-all ep=backward
	^Qwen3_235B_a22B	dispatch=all-to-all
	^Qwen3_30B_a3B.* H100.*pp=2	dispatch=all-to-all
	^Qwen3_30B_a3B.* H100	routing=fused ep=none
	^Qwen3_30B_a3B.* B200 .*mb=1	dispatch=all-to-all

	^Nemotron_3_Nano H100	recompute=moe+layernorm+core+moe_act routing=fused ep=none
	^Nemotron_3_Super (B300 nvfp4|B200 mxfp8)	recompute=moe_act+layernorm routing=fused ep=none
	^Nemotron_3_Ultra GB[23]00 mxfp8	recompute=moe_act routing=fused ep=none activations=experts	64
	^Nemotron_3	routing=fused ep=none
`)

// dgxcRecipes are what launch scripts of DGX Cloud Benchmarking recompute (deepseek_v3/pretraining/launch.sh of release
// 25.05.04).
var dgxcRecipes = recipes(`
	^DeepSeekV3 H100.*release 25\.05	recompute=mla_up_proj
	^DeepSeekV3 GB200.*release 25\.05	recompute=core
`)

// recipeText is what the words of recipes are searched in: the model, accelerator and precision of a row, as written, some
// of its plan, and its notes, in which its release is.
func (r *publishedRow) recipeText() string {
	return r.Str("model") + " " + r.Str("accelerator") + " " + r.Str("precision") + " mb=" + r.Str("micro_batch") +
		" pp=" + r.Str("pp") + " vpp=" + r.Str("vpp") + " ep=" + r.Str("ep") + " " + r.Str("notes")
}

// findRecipe returns the first recipe of the source that is about the row.
func (r *publishedRow) findRecipe() *recipe {
	if len(r.source.recipes) == 0 {
		return nil
	}
	text := r.recipeText()
	for i := range r.source.recipes {
		if known := &r.source.recipes[i]; known.words.MatchString(text) {
			return known
		}
	}
	return nil
}

// recomputes reports whether the row's recipe has modules that are recomputed.
func (r *publishedRow) recomputes() bool {
	return r.recipe != nil && strings.Contains(r.recipe.parts, "recompute=")
}

// documents reports whether the source states the value for a blank of an optional column.
func (r *publishedRow) documents(column string) bool {
	switch column {
	case "precision":
		return r.source.precision != ""
	case "zero_stage":
		return r.source.distributed
	default:
		return r.recipe != nil
	}
}
