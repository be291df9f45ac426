package recipe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// torchtitanTOML is a job file of torchtitan 0.2 and before (torchtitan/config/job_config.py), with the older names.
var torchtitanTOML = format{
	name: "torchtitan", doc: "torchtitan: TOML job file, with the key names of all releases that have one", syntax: isTOML,
	keys: map[string]rule{
		"model.name": text(ModelName), "model.flavor": text(flavor), "model.hf_assets_path": text(tokenizer), "hf_transformers.model": text(hfModel),
		"training.seq_len": number(SeqLen), "training.local_batch_size": positive(localBatch), "training.batch_size": positive(localBatch), "training.global_batch_size": number(GlobalBatch),
		"training.enable_cpu_offload": word(Offload, "optimizer+params", "none"), "training.mixed_precision_param": oneOf(Precision, precisions),
		"training.data_parallel_degree": number(shards), "training.data_parallel_replicate_degree": number(replicas), "training.data_parallel_shard_degree": number(shards),
		"training.tensor_parallel_degree": number(TP), "training.sequence_parallel_degree": number(TP), "training.pipeline_parallel_degree": number(PP), "training.context_parallel_degree": number(CP), "training.fp8_linear": fp8Linear, "training.dtype": weightsIn16Bits, "optimizer.state_dtype": weightsIn16Bits, "training.enable_float8_linear": float8, "float8.enable_float8_linear": float8,
		"parallelism.data_parallel_replicate_degree": number(replicas), "parallelism.data_parallel_shard_degree": number(shards),
		"parallelism.tensor_parallel_degree": number(TP), "parallelism.context_parallel_degree": number(CP), "parallelism.pipeline_parallel_degree": number(PP),
		"parallelism.expert_parallel_degree": number(EP), "parallelism.fsdp_reshard_after_forward": nothing, "parallelism.pipeline_parallel_schedule": text(Schedule),
		"parallelism.pipeline_parallel_microbatch_size": number(MicroBatch), "parallelism.pipeline_parallel_layers_per_stage": number(perChunk), "parallelism.pipeline_parallel_first_stage_less_layers": number(firstLess), "parallelism.pipeline_parallel_last_stage_less_layers": number(lastLess), "parallelism.module_fqns_per_model_part": text(stages), "module_fqns_per_model_part": text(stages),
		"experimental.pipeline_parallel_degree": number(PP), "experimental.context_parallel_degree": number(CP), "experimental.pipeline_parallel_schedule": text(Schedule),
		"activation_checkpoint.mode": oneOf(Recompute, map[string]string{"none": "none", "selective": "selective", "full": "full", "memory_budget": "selective"}),
		"model.converters":           float8, "optimizer.name": lower(Optimizer),
	},
	inert: []string{"job.*", "profiling.*", "metrics.*", "checkpoint.*", "lr_scheduler.*", "comm.*", "fault_tolerance.*", "validation.*", "debug.*", "eval.*",
		"model.*_path", "model.norm_type", "model.print_after*", "model.vocab*", "optimizer.*", "training.dataset*", "training.steps", "training.max_norm", "training.warmup_steps", "training.seed", "training.deterministic", "training.gc_*", "training.mixed_precision_reduce", "training.checkpoint_*", "training.clear_cache*", "training.enable_detailed*", "training.aggressive_memory_verbose", "training.data_parallel_type", "training.dataloader*",
		"quantize.*", "float8.*", "mx.*", "memory_estimation.*", "experimental.custom_*", "experimental.pipeline_parallel_split_points", "parallelism.disable_loss_parallel", "parallelism.context_parallel_rotate*",
		"training.*prompt*", "parallelism.expert_tensor_*", "encoder.*", "inference.*", "training.img_size", "training.classif*", "activation_checkpoint.*", "compile.*", "training.compile"}, // the training stack is predicted compiled
	weighs: map[string]effect{
		"parallelism.enable_async_tensor_parallel":     {"tensor parallel traffic overlaps with multiplications", 0.1, 0.02},
		"experimental.enable_async_tensor_parallel":    {"tensor parallel traffic overlaps with multiplications", 0.1, 0.02},
		"parallelism.enable_compiled_autograd":         {"the backward pass is compiled", 0.05, 0.05},
		"experimental.enable_compiled_autograd":        {"the backward pass is compiled", 0.05, 0.05},
		"activation_checkpoint.selective_ac_option":    selectiveParts,
		"activation_checkpoint.memory_budget":          {"how much recomputes", 0.1, 0.2},
		"parallelism.expert_parallel_comm_backend":     {"experts have another dispatcher", 0.1, 0.05},
		"training.enable_fp8_all_gather":               {"weights are gathered in fp8", 0.05, 0.05},
		"optimizer.early_step_in_backward":             {"the optimizer runs within the backward pass", 0.05, 0.2},
		"training.aggressive_memory_mode":              {"the allocator is emptied between parts of a step", 0.1, 0.1},
		"training.img*":                                {"an image model", 0.1, 0.1},
		"parallelism.fsdp_disable_prefetch":            {"gathers do not overlap with computation", 0.1, 0.05},
		"experimental.pipeline_parallel_split_points*": {"the stages are split by hand", 0.1, 0.1},
	},
	finish: torchtitanFinish, emitted: "torchtitan",
}

// selectiveParts is the effect of the ways of selective recomputation.
var selectiveParts = effect{"which parts recompute selectively", 0.05, 0.1}

const hfModel Field = "hf_model"

func init() { internal[hfModel] = true }

// float8 sets the precision where a converter or flag asks for float8.
func float8(r *Recipe, e *keyfile.Entry) {
	if e.Flag() || strings.Contains(e.Value, "float8") || strings.Contains(e.Value, "mx") {
		r.numbers[Field("float8")] = 1
	}
}

func torchtitanFinish(r *Recipe) {
	if _, ok := r.numbers["float8"]; ok {
		delete(r.numbers, "float8")
		r.texts[Precision] = "fp8"
	}
	if f := r.texts[flavor]; f != "" && r.texts[ModelName] != "" {
		r.texts[ModelName] += "/" + f
	}
	if m := r.texts[hfModel]; m != "" {
		r.texts[ModelName] = m
	}
	r.expertShards("parallelism.expert_tensor_parallel_degree", 1)
	if r.texts[Recompute] != "selective" {
		r.without("activation_checkpoint.")
	}
	shard, sharded := r.numbers[shards]
	if sharded && shard < 1 {
		sharded = false
	}
	rep := r.degree(replicas)
	if sharded {
		r.numbers[DP] = mul(rep, shard)
		if cp := r.degree(CP); rep > 1 && shard*cp > 1 {
			r.numbers[Shard] = mul(shard, cp)
		}
	}
	pp := r.degree(PP)
	never := strings.EqualFold(r.valueOf("parallelism.fsdp_reshard_after_forward"), "never")
	always := strings.EqualFold(r.valueOf("parallelism.fsdp_reshard_after_forward"), "always")
	switch {
	case sharded && shard*r.degree(CP) == 1:
		r.setDefault(ZeRO, 0)
	case pp > 1 && !always: // unless told otherwise, torchtitan does not gather again with a pipeline
		r.setDefault(ZeRO, 1)
	case pp > 1, !never:
		r.setDefault(ZeRO, 3)
	default:
		r.setDefault(ZeRO, 2)
	}
	if strings.Contains(r.texts[Offload], "params") {
		r.numbers[ZeRO] = 3
	}
	r.titanDefaults()
	if pp == 1 {
		r.numbers[MicroBatch] = r.numbers[localBatch]
		if _, global := r.numbers[GlobalBatch]; !global {
			r.numbers[GradAccum] = 1
		}
	}
	if r.numbers[MicroBatch] == 0 && pp > 1 {
		delete(r.numbers, MicroBatch)
	}
	if r.degree(TP) > 1 {
		r.numbers[SP] = 1
	}
	if parts := r.texts[stages]; parts != "" && pp > 1 {
		r.numbers[VPP] = max(strings.Count(parts, "[")/pp, 1)
	} else if strings.EqualFold(r.texts[Schedule], "Interleaved1F1B") && r.numbers[perChunk] == 0 && pp > 1 && !r.isOldTitan() {
		r.numbers[VPP] = 2
		r.assume("a rank has 2 stages, as torchtitan gives it unless pipeline_parallel_layers_per_stage says otherwise")
	}
	r.schedule()
}

// titanDefaults sets what torchtitan/config/job_config.py has for keys that the file leaves out.
func (r *Recipe) titanDefaults() {
	for _, d := range []struct {
		of    Field
		key   string
		value int
	}{{localBatch, "training.local_batch_size", 8}, {SeqLen, "training.seq_len", 2048}} {
		if _, ok := r.numbers[d.of]; !ok {
			r.numbers[d.of] = d.value
			r.assume(fmt.Sprintf("%s=%d, torchtitan's default", d.key, d.value))
		}
	}
	if r.texts[Recompute] == "" {
		r.texts[Recompute] = "selective"
		r.assume("activation_checkpoint.mode=selective, torchtitan's default")
		r.uncounted("activation_checkpoint.mode", "selective", selectiveParts)
	}
}

// schedule normalizes the name of a pipeline schedule of torch.distributed.pipelining.
func (r *Recipe) schedule() {
	name := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(r.texts[Schedule]))
	delete(r.texts, Schedule)
	if r.degree(PP) == 1 || name == "" {
		return
	}
	if s, ok := torchSchedules[name]; ok {
		r.texts[Schedule] = s
	} else {
		r.problem("pipeline schedule %q is not known: 1F1B is assumed", name)
	}
}

var torchSchedules = map[string]string{
	"1f1b": "1f1b", "interleaved1f1b": "1f1b", "gpipe": "gpipe", "interleavedgpipe": "gpipe", "zbvzerobubble": "zb-v", "zbv": "zb-v",
	"dualpipev": "dualpipe-v", "zb": "zb-h1", "interleavedzerobubble": "zb-h1", "flexibleinterleaved1f1b": "zb-h1",
}

// valueOf returns the value of a key of the file, "" if it has none.
func (r *Recipe) valueOf(key string) string {
	for i := range r.entries {
		if r.entries[i].Key == key {
			return r.entries[i].Value
		}
	}
	return ""
}

// has reports whether the file has a key.
func (r *Recipe) has(key string) bool {
	return slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return e.Key == key })
}

// ImpliesSP reports whether tensor parallelism of the file's format, or of the file, is sequence parallel.
func (r *Recipe) ImpliesSP() bool {
	return r.format == &torchtitanTOML || r.numbers[SP] == 1
}

// fp8Linear reads the oldest name of float8: "", or how scales are found.
func fp8Linear(r *Recipe, e *keyfile.Entry) {
	if !e.Open() && !strings.EqualFold(e.Value, "false") {
		r.numbers["float8"] = 1
	}
}
