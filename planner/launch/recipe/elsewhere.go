package recipe

import (
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// place says how a part of plan p is set outside of the file: by the value of a flag or key, and where. "" = it is
// not.
type place func(r *Recipe, p *spec.Plan) string

// Elsewhere says how a change that the file cannot hold is made: which flags of the program or keys of another file, and which
// keys of the file itself. It is "" where a part of the change has no such place.
func (r *Recipe) Elsewhere(from, to spec.Config) string {
	old, p := from.Plan.Normal(), to.Plan.Normal()
	var ways []string
	outside := false
	for _, part := range parts {
		value := part.value(&p)
		if part.value(&old) == value {
			continue
		}
		edit, editable := r.format.edits[part.of]
		if !editable {
			if part.of == DP || part.of == GradAccum && r.explicit[GlobalBatch] {
				continue // it follows
			}
			return ""
		}
		changes, why := edit(r, &p)
		if why == "" {
			for _, c := range changes {
				if c.remove {
					return ""
				}
				way := fmt.Sprintf("%s: %s in %s", c.key, c.value, r.name)
				if r.format.syntax == isShell {
					way = fmt.Sprintf("--%s %s in %s", strings.TrimPrefix(c.key, "--"), c.value, r.name)
				}
				ways = append(ways, way)
			}
			continue
		}
		way := ""
		if at := r.format.outside[part.of]; at != nil {
			way = at(r, &p)
		}
		if way == "" {
			return ""
		}
		ways, outside = append(ways, way), true
	}
	if !outside {
		return ""
	}
	return strings.Join(ways, "; ")
}

// argument is a part that the arguments of the program have, as TrainingArguments does.
func argument(name string, value func(p *spec.Plan) any) place {
	return func(_ *Recipe, p *spec.Plan) string {
		if v := value(p); v != nil {
			return fmt.Sprintf("--%s %v among the program's arguments", name, v)
		}
		return ""
	}
}

// stageInDeepSpeed is the ZeRO stage in the DeepSpeed file that a file names.
func stageInDeepSpeed(r *Recipe, p *spec.Plan) string {
	if name := r.deepspeedName(); name != "" {
		return fmt.Sprintf("zero_optimization.stage: %d in %s", p.ZeRO, name)
	}
	return ""
}

// offloadInDeepSpeed is offloading in that file.
func offloadInDeepSpeed(r *Recipe, p *spec.Plan) string {
	name := r.deepspeedName()
	if name == "" {
		return ""
	}
	device := map[bool]string{true: "cpu", false: "none"}
	return fmt.Sprintf("zero_optimization.offload_optimizer.device: %s and zero_optimization.offload_param.device: %s in %s",
		device[p.Offload != spec.OffloadNone], device[p.Offload == spec.OffloadParams], name)
}

// inMesh is a degree in the file of Accelerate, where it goes with FSDP.
func inMesh(key string, degree func(p *spec.Plan) int) place {
	return func(r *Recipe, p *spec.Plan) string {
		if p.ZeRO < 2 || r.deepspeedName() != "" || p.PP > 1 {
			return ""
		}
		return fmt.Sprintf("parallelism_config_%s: %d and parallelism_config_dp_shard_size: %d under parallelism_config in the file of Accelerate", key, degree(p), p.DP)
	}
}

var (
	inDeepSpeed = map[Field]place{ZeRO: stageInDeepSpeed, Offload: offloadInDeepSpeed}

	outsideAccelerate = map[Field]place{
		ZeRO: stageInDeepSpeed, Offload: offloadInDeepSpeed,
		MicroBatch: argument("per_device_train_batch_size", func(p *spec.Plan) any { return p.MicroBatch }),
		GradAccum:  argument("gradient_accumulation_steps", func(p *spec.Plan) any { return p.AccumSteps }),
		Recompute: argument("gradient_checkpointing", func(p *spec.Plan) any {
			if p.Recompute == spec.RecomputeSelective {
				return nil
			}
			return p.Recompute == spec.RecomputeFull
		}),
	}

	outsideTrainer = map[Field]place{
		ZeRO: stageInDeepSpeed, Offload: offloadInDeepSpeed,
		TP: inMesh("tp_size", func(p *spec.Plan) int { return p.TP }), CP: inMesh("cp_size", func(p *spec.Plan) int { return p.CP }),
		Precision: func(_ *Recipe, p *spec.Plan) string {
			if p.Precision.Format() != spec.FP8 {
				return ""
			}
			return "mixed_precision: fp8 in the file of Accelerate"
		},
	}
)
