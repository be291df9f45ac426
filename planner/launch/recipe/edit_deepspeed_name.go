package recipe

import (
	"fmt"
	"path"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// shipped are the DeepSpeed files that come with a framework, by ZeRO stage and what is offloaded: deepspeed_configs of
// axolotl, examples/deepspeed of LLaMA-Factory. More than one name means the same.
var shipped = map[string]map[shippedState][]string{
	"axolotl": {{1, spec.OffloadNone}: {"zero1.json"}, {2, spec.OffloadNone}: {"zero2.json"}, {3, spec.OffloadNone}: {"zero3_bf16.json", "zero3.json"},
		{3, spec.OffloadParams}: {"zero3_bf16_cpuoffload_all.json", "zero3_cpuoffload_all.json"}},
	"trainer": {{0, spec.OffloadNone}: {"ds_z0_config.json"}, {2, spec.OffloadNone}: {"ds_z2_config.json"}, {3, spec.OffloadNone}: {"ds_z3_config.json"},
		{2, spec.OffloadOptimizer}: {"ds_z2_offload_config.json"}, {3, spec.OffloadParams}: {"ds_z3_offload_config.json"}},
}

type shippedState struct {
	zero    int
	offload spec.Offload
}

// shippedIn returns what a DeepSpeed file of a framework says, by its name.
func shippedIn(framework, name string) (shippedState, bool) {
	for state, names := range shipped[framework] {
		if slices.Contains(names, path.Base(name)) {
			return state, true
		}
	}
	return shippedState{}, false
}

// orShipped changes ZeRO and offload by the name of another DeepSpeed file that the framework ships, where the file names
// one of them; else it is edit.
func orShipped(edit planEdit) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) {
		now := r.valueOf("deepspeed")
		if _, known := shippedIn(r.Format, now); !known {
			names := shipped[r.Format][shippedState{p.ZeRO, p.Offload}]
			if r.Format == "axolotl" && p.ZeRO == 1 && len(names) > 0 && p.TP*p.CP == 1 && now == "" && r.numbers[ZeRO] == 0 { // FSDP has no such stage
				return []change{{key: "deepspeed", value: path.Join("deepspeed_configs", names[0])}}, ""
			}
			return edit(r, p)
		}
		names := shipped[r.Format][shippedState{p.ZeRO, p.Offload}]
		if len(names) == 0 {
			return nil, fmt.Sprintf("no DeepSpeed file beside %s has zero=%d and offload=%s", path.Base(now), p.ZeRO, p.Offload)
		}
		if slices.Contains(names, path.Base(now)) {
			return nil, ""
		}
		return []change{{key: "deepspeed", value: path.Join(path.Dir(now), names[0])}}, ""
	}
}
