package recipe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// deepspeedJSON is the configuration file of DeepSpeed 0.18 ("DeepSpeed Configuration JSON") and before.
var deepspeedJSON = format{
	name: "deepspeed", doc: "DeepSpeed: ds_config.json", syntax: isJSON,
	keys: map[string]rule{
		"train_batch_size": number(GlobalBatch), "train_micro_batch_size_per_gpu": number(MicroBatch), "gradient_accumulation_steps": number(GradAccum),
		"zero_optimization.stage": number(ZeRO), "zero_optimization.offload_optimizer.device": offloadTo("optimizer"), "zero_optimization.offload_param.device": offloadTo("params"),
		"zero_optimization.cpu_offload": offloadFlag("optimizer"), "zero_optimization.cpu_offload_params": offloadFlag("params"), "zero_optimization.cpu_offload_param": offloadFlag("params"),
		"zero_optimization.mics_shard_size": positive(Shard),
		"tensor_parallel.autotp_size":       number(TP), "tensor_parallel.tp.tp_size": number(TP), "sequence_parallel_size": number(CP), "sequence_parallel.size": number(CP), "sequence_parallel.ulysses.degree": fallback(CP), "expert_parallel.autoep_size": number(EP),
		"fp16.enabled": nothing, "bf16.enabled": nothing, "bfloat16.enabled": nothing, "optimizer.type": lower(Optimizer),
		"activation_checkpointing.partition_activations": checkpointing, "activation_checkpointing.contiguous_memory_optimization": checkpointing,
	},
	inert: slices.Concat(deepspeedNested, []string{"fp16.*", "bf16.*", "bfloat16.*", "optimizer.*", "scheduler.*", "amp.*", "gradient_clipping", "prescale_gradients", "gradient_predivide_factor", "sparse_gradients", "steps_per_print", "wall_clock_breakdown", "dump_state",
		"zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "flops_profiler.*", "comms_logger.*", "comms_config.*", "monitor_config.*", "tensorboard.*", "wandb.*", "csv_monitor.*", "memory_breakdown", "checkpoint.*", "data_types.*", "communication_data_type", "seq_parallel_communication_data_type", "gradient_accumulation_dtype", "aio.*", "autotuning.*", "train_steps", "seed", "disable_allgather", "tensor_parallel.*", "sequence_parallel.*", "expert_parallel.*", "elasticity.*", "comment", "zero_optimization_comment", "use_data_before_expert_parallel_", "load_universal_checkpoint", "data_efficiency.enabled", "data_efficiency.data_routing.enabled"}),
	weighs: map[string]effect{
		"sparse_attention.*":                           {"attention is sparse", 0.3, 0.2},
		"zero_optimization.zenflow.*":                  {"the optimizer on the host overlaps with the step", 0.3, 0.1},
		"data_efficiency.*":                            {"tokens or samples are dropped", 0.3, 0.2},
		"curriculum_learning.*":                        {"samples are shorter at the beginning", 0.3, 0.2},
		"progressive_layer_drop.*":                     {"layers are dropped", 0.3, 0.1},
		"compression_training.*":                       {"weights or activations are compressed", 0.2, 0.2},
		"quantize_training.*":                          {"weights are quantized", 0.2, 0.2},
		"eigenvalue.*":                                 {"eigenvalues are computed", 0.2, 0.1},
		"compile.*":                                    {"the step is compiled", 0.15, 0.1},
		"torch_autocast.*":                             {"formats are chosen by torch.autocast", 0.05, 0.1},
		"bf16.bf16_master_weights_and_grads":           {"master weights and gradients are in bf16", 0.03, 0.3},
		"bf16.bf16_optimizer_states":                   {"optimizer states are in bf16", 0.03, 0.3},
		"fp16.fp16_master_weights_and_grads":           {"master weights and gradients are in fp16", 0.03, 0.3},
		"zero_optimization.zero_quantized_*":           {"traffic is quantized (ZeRO++)", 0.2, 0.05},
		"zero_optimization.zero_hpz_partition*":        {"a second copy of the weights stays on each node (ZeRO++)", 0.2, 0.2},
		"zero_optimization.offload_optimizer.ratio":    {"only a part of the optimizer is on the host", 0.2, 0.2},
		"zero_optimization.stage3_param_persistence_*": {"small parameters are not sharded", 0.02, 0.02},
		"zero_optimization.offload_*.nvme_path":        {"states are on NVMe, which is slower than the host memory that is counted", 0.5, 0.05},
		"activation_checkpointing.cpu_checkpointing":   {"inputs of recomputed layers are on the host", 0.1, 0.1},
		"sequence_parallel.tiling.*":                   {"the MLP and the loss are computed in parts", 0.05, 0.15},
		"moe.*":                                        {"experts are configured here", 0.2, 0.2},
		"hybrid_engine.*":                              {"samples are generated between steps", 0.3, 0.2},
		"pipeline.*":                                   {"a pipeline is configured here: its stages are an argument of the program", 0.3, 0.3},
	},
	finish: deepspeedFinish, emitted: "deepspeed",
}

// checkpointing reads the section that says how layers are recomputed. That they are is up to the program.
func checkpointing(r *Recipe, _ *keyfile.Entry) {
	if r.texts[Recompute] == "" {
		r.texts[Recompute] = "full"
		r.assume("activation_checkpointing is there, so recompute=full: the program decides whether it checkpoints its layers")
	}
}

func (r *Recipe) assume(text string) { r.Assumed = append(r.Assumed, text) }

// deepspeedNested are keys of ZeRO and of activation checkpointing that change neither time nor memory much.
var deepspeedNested = slices.Concat(
	under("zero_optimization.", "contiguous_gradients", "reduce_scatter", "reduce_bucket_size", "use_multi_rank_bucket_allreduce", "allgather_partitions", "allgather_bucket_size", "overlap_comm", "load_from_fp32_weights", "elastic_checkpoint",
		"sub_group_size", "stage3_*", "max_live_parameters", "max_reuse_distance", "prefetch_bucket_size", "param_persistence_threshold", "model_persistence_threshold", "gather_*_weights_on_model_save", "use_all_reduce_for_fetch_params",
		"round_robin_gradients", "ignore_unused_parameters", "legacy_stage1", "memory_efficient_linear", "override_module_apply", "pipeline_loading_checkpoint", "log_trace_cache_warnings", "cpu_offload_use_pin_memory", "mics_hierarchical_params_gather",
		"module_granularity_threshold", "offload_*.pin_memory", "offload_*.buffer_*", "offload_*.fast_init", "offload_*.pipeline*", "offload_*.max_in_cpu", "offload_*.ratio", "_comment", "comment"),
	under("activation_checkpointing.", "number_checkpoints", "synchronize_checkpoint_boundary", "profile"))

// offloadTo reads the device that a part is offloaded to.
func offloadTo(part string) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		switch strings.ToLower(e.Value) {
		case "cpu":
			r.offload(part)
		case "nvme":
			r.offload(part + "(nvme)")
		case "none", "":
			r.offload("")
		default:
			r.problem("%s: %q is not one of cpu, none, nvme", e.Key, e.Value)
		}
	}
}

// offloadFlag reads a part that is offloaded or not.
func offloadFlag(part string) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if e.Flag() {
			r.offload(part)
		} else if !e.Open() {
			r.offload("")
		}
	}
}

// offload adds a part, the optimizer before parameters; "" says that something is not offloaded.
func (r *Recipe) offload(part string) {
	had := r.texts[Offload]
	switch {
	case part == "" && had == "":
		r.texts[Offload] = "none"
	case part == "":
	case had == "" || had == "none":
		r.texts[Offload] = part
	case strings.HasPrefix(part, "optimizer"):
		r.texts[Offload] = part + "+" + had
	default:
		r.texts[Offload] = had + "+" + part
	}
}

func deepspeedFinish(r *Recipe) {
	is := func(key string) (yes, no bool) {
		v := strings.ToLower(r.valueOf(key))
		return v == "true", v == "false"
	}
	bf, _ := is("bf16.enabled")
	old, _ := is("bfloat16.enabled")
	fp, _ := is("fp16.enabled")
	r.oneFormat("bf16.enabled", "fp16.enabled")
	switch {
	case bf || old:
		r.texts[Precision] = "bf16"
	case fp:
		r.texts[Precision] = "fp16"
	case !slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasSuffix(e.Key, "16.enabled") && e.Open() }):
		r.texts[Precision] = "fp32"
		r.fp32("bf16 nor fp16")
	}
	r.paramsStay()
}

// fp32 says that a file, which is not within another one, names no number format.
func (r *Recipe) fp32(neither string) {
	if r.text != "" {
		r.assume("numbers of 32 bits: the file enables neither " + neither)
	}
}

// oneFormat reports two number formats that are on at the same time.
func (r *Recipe) oneFormat(bf16, fp16 string) {
	if r.flagOf(bf16) && r.flagOf(fp16) {
		r.problem("%s and %s are both on: the framework takes one of them", bf16, fp16)
	}
}

// paramsStay keeps parameters on the device below stage 3, where DeepSpeed does not offload them.
func (r *Recipe) paramsStay() {
	if stage, ok := r.numbers[ZeRO]; ok && stage < 3 && strings.Contains(r.texts[Offload], "params") {
		kept, _, _ := strings.Cut(r.texts[Offload], "params")
		r.texts[Offload] = cmp.Or(strings.TrimSuffix(kept, "+"), "none")
		r.assume(fmt.Sprintf("parameters stay on the device: DeepSpeed offloads them at stage 3 only, and the file has stage %d", stage))
	}
}
