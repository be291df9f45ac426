package recipe

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe/shell"
)

// megatronOldNames are names of options in forks and older releases.
var megatronOldNames = map[string][]string{
	"--tensor-model-parallel-size": {"--model-parallel-size"}, "--expert-model-parallel-size": {"--moe-expert-parallel-size"}, "--context-parallel-size": {"--ds-sequence-parallel-size"},
}

// megatronNames gives changes the names that the file has. Megatron-DeepSpeed and BigScience have a ZeRO stage, and
// recomputation of all layers or of none.
func (r *Recipe) megatronNames(changes []change, to *spec.Config) (out []change, why string) {
	old := r.has("--checkpoint-activations") || r.has("--zero-stage")
	for _, c := range changes {
		if i := slices.IndexFunc(megatronOldNames[c.key], r.has); i >= 0 && !r.has(c.key) {
			c.key = megatronOldNames[c.key][i]
		}
		switch {
		case r.has("--zero-stage") && (c.key == "--use-distributed-optimizer" || strings.Contains(c.key, "fsdp") || c.key == "--data-parallel-sharding-strategy" || c.key == "--ckpt-format"):
			c = change{key: "--zero-stage", value: strconv.Itoa(to.Plan.ZeRO)}
		case old && strings.HasPrefix(c.key, "--recompute-") && to.Plan.Recompute == spec.RecomputeSelective:
			return nil, "recompute=selective: the release that the file is for checkpoints whole layers"
		case old && c.key == "--recompute-granularity":
			c = change{key: "--checkpoint-activations", value: shell.Present, remove: to.Plan.Recompute == spec.RecomputeNone}
		case old && strings.HasPrefix(c.key, "--recompute-"):
			continue
		case old && c.key == "--pipeline-model-parallel-layout":
			return nil, "pp: the release that the file is for splits layers evenly"
		case old && strings.HasPrefix(c.key, "--fp8"):
			return nil, "precision=fp8: the release that the file is for has bf16 and fp16"
		case c.key == "--recompute-granularity" && c.remove && r.has("--recompute-activations"):
			c.key = "--recompute-activations"
		}
		out = append(out, c)
	}
	if f := to.Plan.Precision.Format(); f != spec.FP8 && f != spec.FP4 {
		for _, e := range r.entries {
			if (strings.HasPrefix(e.Key, "--fp8") || strings.HasPrefix(e.Key, "--fp4")) && !slices.ContainsFunc(out, func(c change) bool { return c.key == e.Key }) {
				out = append(out, change{key: e.Key, remove: true})
			}
		}
	}
	return out, ""
}

const offloadDevice = "zero_optimization.offload_optimizer.device"

// deepspeedNames turns what package launch leaves out into a device of none: a section keeps its other keys.
func (r *Recipe) deepspeedNames(changes []change) (out []change) {
	for _, c := range changes {
		oldName := map[string][]string{offloadDevice: {"zero_optimization.cpu_offload"}, "zero_optimization.offload_param.device": {"zero_optimization.cpu_offload_params", "zero_optimization.cpu_offload_param"}}[c.key]
		i := slices.IndexFunc(oldName, r.has)
		switch {
		case i >= 0:
			c = change{key: oldName[i], value: strconv.FormatBool(!c.remove)}
		case c.remove && strings.HasSuffix(c.key, ".device"):
			c = change{key: c.key, value: `"none"`}
		case c.remove && strings.Contains(c.key, ".offload_"):
			continue
		}
		out = append(out, c)
	}
	return out
}
