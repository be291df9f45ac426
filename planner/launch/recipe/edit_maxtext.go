package recipe

import (
	"fmt"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var maxtextEdits = map[Field]planEdit{
	DP: maxtextShards, TP: maxtextAxis(TP, "tensor"), CP: maxtextAxis(CP, "context"), EP: maxtextAxis(EP, "expert"), PP: maxtextAxis(PP, "pipeline"),
	MicroBatch: maxtextBatch, GradAccum: writes(GradAccum, "gradient_accumulation_steps"),
	Recompute: words("remat_policy", map[spec.Recompute]string{spec.RecomputeNone: "none", spec.RecomputeSelective: "minimal", spec.RecomputeFull: "full"}),
	Precision: multiplies([]change{{key: "quantization", value: "fp8"}}, `""`,
		wordOf(map[spec.Precision]string{spec.BF16: "bfloat16", spec.FP16: "float16", spec.FP32: "float32"}, "dtype")), ZeRO: maxtextStage,
	Offload: maxtextOffload, SP: cannot("MaxText splits sequences by the rules of its mesh"),
}

// maxtextAxis writes the size of an axis within a slice.
func maxtextAxis(of Field, axis string) planEdit { return writes(of, "ici_"+axis+"_parallelism") }

// maxtextShards writes the axis that shards states, unless the file leaves it to the devices.
func maxtextShards(r *Recipe, p *spec.Plan) ([]change, string) {
	axes := []string{"ici_fsdp", "ici_data"}
	if n := r.numbers[Shard]; n > 0 && p.Shard == n {
		axes = []string{"dcn_data", "ici_data"} // the number of copies changes
	}
	for _, axis := range axes {
		e := entry{value: r.valueOf(axis + "_parallelism")}
		n, ok := e.whole()
		if !ok || n < 1 || n == 1 && axis != "ici_data" {
			continue
		}
		split := r.degree(TP) * r.degree(PP) * r.degree(CP)
		samples := p.Devices() / max(split, 1) // the present degree
		if n*p.DP%max(samples, 1) != 0 {
			return nil, fmt.Sprintf("an axis of %d is not scaled to dp=%d", n, p.DP)
		}
		return []change{{key: axis + "_parallelism", value: strconv.Itoa(n * p.DP / samples)}}, ""
	}
	return nil, ""
}

// maxtextBatch writes the samples of a chip: those of a replica over its chips, and with a pipeline all of a step.
func maxtextBatch(r *Recipe, p *spec.Plan) ([]change, string) {
	if perChip, ok := r.perChip(); p.MicroBatch == 1 && (!ok || !(perChip > 0)) {
		return nil, "" // as it is read without the key
	}
	samples, chips := p.MicroBatch, p.TP*p.PP*p.CP
	if p.PP > 1 {
		samples *= p.AccumSteps
	}
	perChip := float64(samples) / float64(chips) // MaxText takes fractions
	return []change{{key: "per_device_batch_size", value: strconv.FormatFloat(perChip, 'f', -1, 64)}}, ""
}

func maxtextOffload(_ *Recipe, p *spec.Plan) ([]change, string) {
	if p.Offload == spec.OffloadParams {
		return nil, "weights on the host are not read from such files"
	}
	return []change{{key: "optimizer_memory_host_offload", value: strconv.FormatBool(p.Offload == spec.OffloadOptimizer)}}, ""
}

// maxtextStage turns the axes of the mesh that shard weights, gradients and states together into those that hold copies of
// them, and back.
func maxtextStage(r *Recipe, p *spec.Plan) (out []change, why string) {
	from, to := "fsdp", "data"
	switch {
	case p.ZeRO == 3:
		from, to = to, from
	case p.ZeRO != 0:
		return nil, "MaxText shards weights, gradients and states together, by its mesh"
	case r.numbers[Shard] > 0 || r.has("ici_fsdp_transpose_parallelism"):
		return nil, "more than one axis of the mesh shards"
	}
	for _, where := range []string{"ici_", "dcn_"} {
		key := where + from + "_parallelism"
		if v := r.valueOf(key); v != "" && v != "1" {
			out = append(out, change{key: key, value: "1"}, change{key: where + to + "_parallelism", value: v})
		}
	}
	if len(out) == 0 { // base.yml has -1 for the axis that shards
		out = []change{{key: "ici_fsdp_parallelism", value: "1"}, {key: "ici_data_parallelism", value: "-1"}}
		if p.ZeRO == 3 {
			out = []change{{key: "ici_data_parallelism", value: "1"}, {key: "ici_fsdp_parallelism", value: "-1"}}
		}
	}
	return out, ""
}
