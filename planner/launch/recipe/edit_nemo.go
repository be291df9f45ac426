package recipe

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

var nemoEdits = map[Field]planEdit{
	TP: nemoDegree(TP, "tensor_model_parallel_size"), PP: nemoDegree(PP, "pipeline_model_parallel_size"), CP: nemoDegree(CP, "context_parallel_size"),
	EP: nemoDegree(EP, "expert_model_parallel_size"), VPP: nemoStages, MicroBatch: writes(MicroBatch, "model.micro_batch_size", "data.micro_batch_size", "train.micro_batch_size"),
	Recompute: nemoRecompute,
	SP:        nemoDegree(SP, "sequence_parallel"), ZeRO: nemoOptimizer, Offload: nemoOffload,
	Precision: nemoPrecision,
}

// nemoPrecision writes the number format; 8 bits need Transformer Engine, which other formats have too.
func nemoPrecision(r *Recipe, p *spec.Plan) ([]change, string) {
	switch {
	case r.isBridge():
		words := map[spec.Precision]string{spec.BF16: "bf16_mixed", spec.FP16: "fp16_mixed", spec.FP8: "bf16_with_fp8_current_scaling_mixed"}
		if words[p.Precision.Format()] == "" {
			return nil, "a recipe of precision is bf16, fp16 or fp8"
		}
		return []change{{key: "mixed_precision", value: words[p.Precision.Format()]}}, ""
	case !r.isNeMo1():
		return multiplies([]change{{key: "trainer.plugins.fp8", value: "hybrid"}}, "null",
			wordOf(map[spec.Precision]string{spec.BF16: "bf16-mixed", spec.FP16: "16-mixed", spec.FP32: "32"}, "trainer.plugins.precision"))(r, p)
	}
	out, why := multiplies([]change{{key: "model.fp8", value: "true"}, {key: "model.fp8_hybrid", value: "true"}}, "false",
		wordOf(map[spec.Precision]string{spec.BF16: "bf16-mixed", spec.FP16: "16-mixed", spec.FP32: "32"}, "trainer.precision"))(r, p)
	if p.Precision.Format() == spec.FP8 {
		out = append([]change{{key: "model.transformer_engine", value: "true"}}, out...)
	}
	return out, why
}

// nemoStages writes virtual stages: null without.
func nemoStages(r *Recipe, p *spec.Plan) ([]change, string) {
	value := strconv.Itoa(p.VirtualStages)
	if p.VirtualStages == 1 {
		value = "null"
	}
	return []change{{key: r.nemoSection() + "virtual_pipeline_model_parallel_size", value: value}}, ""
}

// nemoOptimizer chooses the optimizer that shards its states, or FSDP.
func nemoOptimizer(r *Recipe, p *spec.Plan) (out []change, why string) {
	name := "fused_adam"
	switch {
	case !r.isNeMo1() && p.ZeRO > 1:
		return nil, "FSDP is another strategy, which the program makes"
	case !r.isNeMo1():
		key := "optim.config.use_distributed_optimizer"
		if r.isBridge() {
			key = r.named("ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer")
		}
		return []change{{key: key, value: strconv.FormatBool(p.ZeRO == 1)}}, ""
	case p.ZeRO == 1 && r.flagOf("model.mcore_gpt"):
		name = "mcore_distributed_optim"
	case p.ZeRO == 1:
		name = "distributed_fused_adam"
	case p.ZeRO > 1:
		out = []change{{key: "model.fsdp", value: "true"}, {key: "model.fsdp_sharding_strategy", value: map[int]string{2: "grad", 3: "full"}[p.ZeRO]}}
	}
	if p.ZeRO < 2 && r.flagOf("model.fsdp") {
		out = append(out, change{key: "model.fsdp", value: "false"})
	}
	return append(out, change{key: "model.optim.name", value: name}), ""
}

// nemoRecompute writes what is recomputed, null for nothing.
func nemoRecompute(r *Recipe, p *spec.Plan) ([]change, string) {
	key := "model.activations_checkpoint_"
	switch {
	case r.isBridge():
		key = "model.recompute_"
	case !r.isNeMo1():
		key = "model.config.recompute_"
	}
	value := string(p.Recompute)
	if p.Recompute == spec.RecomputeNone {
		value = "null"
	}
	return append([]change{{key: key + "granularity", value: value}}, r.wholeLayerKeys(p, key, change{value: "null"})...), ""
}

// wholeLayerKeys changes the keys that Megatron Core demands with full recomputation, and refuses without.
func (r *Recipe) wholeLayerKeys(p *spec.Plan, prefix string, none change) (out []change) {
	for _, c := range []change{{key: "method", value: "uniform"}, {key: "num_layers", value: "1"}} {
		c.key = prefix + c.key
		has := !slices.Contains([]string{"", "null", "~"}, r.valueOf(c.key))
		switch full := p.Recompute == spec.RecomputeFull; {
		case full && !has:
			out = append(out, c)
		case !full && has:
			out = append(out, change{key: c.key, value: none.value, remove: none.remove})
		}
	}
	return out
}

func nemoOffload(r *Recipe, p *spec.Plan) ([]change, string) {
	if p.Offload == spec.OffloadParams || !r.has("model.optim.cpu_offload") {
		return nil, "optimizers of NeMo that run on the host are not known to pacer"
	}
	return []change{{key: "model.optim.cpu_offload", value: strconv.FormatBool(p.Offload == spec.OffloadOptimizer)}}, ""
}

// nemoSection is the section with the degrees: NeMo 2 has them in its strategy.
func (r *Recipe) nemoSection() string {
	if slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasPrefix(e.Key, "trainer.strategy.") }) {
		return "trainer.strategy."
	}
	return "model."
}

// isBridge reports whether a file is for Megatron Bridge.
func (r *Recipe) isBridge() bool {
	return slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasPrefix(e.Key, "train.") })
}

// isNeMo1 reports whether a file is for NeMo 1. Later releases have other keys of optimizer and recomputation.
func (r *Recipe) isNeMo1() bool { return r.nemoSection() == "model." && !r.isBridge() }

func nemoDegree(of Field, name string) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) { return writes(of, r.nemoSection()+name)(r, p) }
}
