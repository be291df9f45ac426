package recipe

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

var maxtextEdits = map[Field]planEdit{
	DP: maxtextShards, TP: maxtextTensor, SP: maxtextTensor, CP: maxtextAxis(CP, "context"), EP: maxtextAxis(EP, "expert"), PP: maxtextAxis(PP, "pipeline"),
	MicroBatch: maxtextBatch, GradAccum: writes(GradAccum, "gradient_accumulation_steps"),
	Recompute: words("remat_policy", map[spec.Recompute]string{spec.RecomputeNone: "none", spec.RecomputeSelective: "minimal", spec.RecomputeFull: "full"}),
	Precision: multiplies([]change{{key: "quantization", value: "fp8"}}, `""`,
		wordOf(map[spec.Precision]string{spec.BF16: "bfloat16", spec.FP16: "float16", spec.FP32: "float32"}, "dtype")), ZeRO: maxtextStage,
	Offload: maxtextOffload, Shard: maxtextCopies,
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
		e := keyfile.Entry{Value: r.valueOf(axis + "_parallelism")}
		n, ok := e.Whole()
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

// maxtextTensor writes the axis that splits layers: one that splits the samples between them too, or the other.
func maxtextTensor(r *Recipe, p *spec.Plan) ([]change, string) {
	key, other := "ici_tensor_parallelism", "ici_tensor_sequence_parallelism"
	if p.SequenceParallel {
		key, other = other, key
	}
	out := []change{{key: key, value: strconv.Itoa(p.TP)}}
	if r.has(other) {
		out = append(out, change{key: other, value: "1"})
	}
	return out, ""
}

// maxtextOffload writes what is on the host. Weights are there in parts that the scan over layers takes, so that its axis
// has to be the first.
func maxtextOffload(r *Recipe, p *spec.Plan) ([]change, string) {
	out := []change{{key: "optimizer_memory_host_offload", value: strconv.FormatBool(p.Offload != spec.OffloadNone)}}
	if params := p.Offload == spec.OffloadParams; params {
		out = append(out, change{key: "parameter_memory_host_offload", value: "true"}, change{key: "param_scan_axis", value: "0"})
	} else if r.has("parameter_memory_host_offload") {
		out = append(out, change{key: "parameter_memory_host_offload", value: "false"})
	}
	return out, ""
}

// maxtextStage turns the axes of the mesh that shard weights, gradients and states together into those that hold copies of
// them, and back. The states of copies may be sharded alone.
func maxtextStage(r *Recipe, p *spec.Plan) ([]change, string) {
	switch {
	case p.ZeRO == 2:
		return nil, "MaxText shards weights, gradients and states together, or states alone"
	case r.has("ici_fsdp_transpose_parallelism") || r.has("dcn_fsdp_transpose_parallelism"):
		return nil, "more than one axis of the mesh shards"
	}
	from, to := "fsdp", "data"
	if p.ZeRO == 3 {
		from, to = to, from
	}
	out := r.moveAxis(from, to)
	if p.ZeRO == 1 || r.has("shard_optimizer_over_data") {
		out = append(out, change{key: "shard_optimizer_over_data", value: strconv.FormatBool(p.ZeRO == 1)})
	}
	return out, ""
}

// maxtextCopies has all devices share the states.
func maxtextCopies(r *Recipe, p *spec.Plan) ([]change, string) {
	if p.Shard > 0 {
		return nil, "the mesh decides it"
	}
	if p.ZeRO < 3 {
		return nil, "" // maxtextStage leaves no axis that shards
	}
	return r.moveAxis("data", "fsdp"), ""
}

// moveAxis gives the devices of an axis of the mesh to another one. base.yml fills the axis fsdp with all that are left.
func (r *Recipe) moveAxis(from, to string) (out []change) {
	size := func(key string) string {
		if v := r.valueOf(key); v != "" || key != "ici_fsdp_parallelism" {
			return cmp.Or(v, "1")
		}
		return "-1"
	}
	for _, where := range []string{"ici_", "dcn_"} {
		key, other := where+from+"_parallelism", where+to+"_parallelism"
		a, b := size(key), size(other)
		if a == "1" {
			continue
		}
		n, okN := (&keyfile.Entry{Value: a}).Whole()
		m, okM := (&keyfile.Entry{Value: b}).Whole()
		if b = "-1"; okN && okM && n > 0 && m > 0 {
			b = strconv.Itoa(mul(n, m))
		}
		out = append(out, change{key: key, value: "1"}, change{key: other, value: b})
	}
	return out
}
