package recipe

import (
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// accelerateYAML is a configuration of HF Accelerate.
var accelerateYAML = format{
	name: "accelerate", doc: "HF Accelerate: YAML with FSDP 1 and 2, DeepSpeed, Megatron-LM or DDP", syntax: isYAML, needs: []string{"distributed_type", "compute_environment", "num_processes", "mixed_precision"},
	keys: map[string]rule{
		"num_processes": number(Devices), "num_machines": number(Nodes), "distributed_type": nothing, "mixed_precision": oneOf(Precision, map[string]string{"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "no": "", "false": ""}),
		"deepspeed_config.zero_stage": number(ZeRO), "deepspeed_config.offload_optimizer_device": offloadTo("optimizer"), "deepspeed_config.offload_param_device": offloadTo("params"), "deepspeed_config.gradient_accumulation_steps": number(GradAccum),
		"gradient_accumulation_steps": number(GradAccum), "fsdp_config.fsdp_offload_params": fsdpOffload, "fsdp_config.fsdp_cpu_offload": fsdpOffload, "fsdp_config.fsdp_reshard_after_forward": reshard, "fsdp_config.fsdp_sharding_strategy": shardingStrategy, "fsdp_config.fsdp_version": nothing,
		"fsdp_config.fsdp_activation_checkpointing":               word(Recompute, "full", "none"),
		"parallelism_config.parallelism_config_dp_replicate_size": number(replicas), "parallelism_config.parallelism_config_dp_shard_size": number(shards), "parallelism_config.parallelism_config_tp_size": number(TP),
		"parallelism_config.parallelism_config_cp_size": moreThanOne(CP), "parallelism_config.parallelism_config_sp_size": moreThanOne(CP),
		"megatron_lm_config.megatron_lm_tp_degree": number(TP), "megatron_lm_config.megatron_lm_pp_degree": number(PP), "megatron_lm_config.megatron_lm_num_micro_batches": number(GradAccum), "megatron_lm_config.megatron_lm_recompute_activations": word(Recompute, "selective", "none"),
		"megatron_lm_config.megatron_lm_use_distributed_optimizer": when(ZeRO, 1), "megatron_lm_config.megatron_lm_sequence_parallelism": yesNo(SP),
	},
	inert: slices.Concat(fsdpInert, accelerateNested, []string{"compute_environment", "debug", "downcast_bf16", "machine_rank", "main_*", "rdzv_backend", "same_network", "tpu_*", "use_cpu", "gpu_ids", "enable_cpu_affinity", "mpirun_config.*", "fp8_config.*", "commands", "command_file", "ipex_config.*", "max_restarts", "monitor_interval", "tee"}),
	weighs: map[string]effect{
		"deepspeed_config.deepspeed_config_file": {"the ZeRO stage and offload are in another file", 0.3, 0.5},
		"dynamo_config.*":                        {"the model is compiled", 0.1, 0.05},
		"fsdp_config.fsdp_forward_prefetch":      {"gathers overlap more", 0.03, 0.05},
		"fsdp_config.fsdp_backward_prefetch":     {"gathers overlap more", 0.02, 0.03},
		"deepspeed_config.offload_*_nvme_path":   {"states are on NVMe, which is slower than the host memory that is counted", 0.5, 0.05},
		"deepspeed_config.deepspeed_moe_layer*":  {"experts are configured here", 0.1, 0.1},
		"fsdp_config.fsdp_limit_all_gathers":     {"gathers wait for each other", 0.02, 0.03},
	},
	prepare: accelerateInUse, finish: accelerateFinish, outside: outsideAccelerate, edits: accelerateEdits,
}

// accelerateNested are keys of its plugins that change neither time nor memory.
var accelerateNested = slices.Concat(
	under("deepspeed_config.", "zero3_init_flag", "zero3_save_16bit_model", "gradient_clipping", "deepspeed_multinode_launcher", "deepspeed_hostfile", "deepspeed_*clusion_filter", "enable_msamp", "seq_parallel_communication_data_type"),
	under("parallelism_config.parallelism_config_", "cp_backend", "cp_comm_strategy", "sp_backend", "sp_seq_length", "sp_seq_length_is_variable", "sp_attn_implementation"),
	under("megatron_lm_config.", "megatron_lm_gradient_clipping"))

// accelerateInUse leaves out the settings of plugins that distributed_type does not name: accelerate launch ignores them.
func accelerateInUse(r *Recipe, entries []keyfile.Entry) (out []keyfile.Entry) {
	r.entries = entries
	kind := r.valueOf("distributed_type")
	for _, e := range entries {
		plugin, _, nested := strings.Cut(e.Key, "_config.")
		if nested && kind != "" && slices.Contains([]string{"fsdp", "deepspeed", "megatron_lm"}, plugin) && !strings.EqualFold(plugin, kind) {
			r.Ignored = append(r.Ignored, e.Key)
			continue
		}
		out = append(out, e)
	}
	return out
}

// moreThanOne sets a degree unless it is 1: there are two keys for one degree.
func moreThanOne(of Field) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if e.Value != "1" || r.numbers[of] == 0 {
			number(of)(r, e)
		}
	}
}

// stageOfAccelerate sets the stage that Accelerate takes where neither it nor a file of DeepSpeed gives one.
func (r *Recipe) stageOfAccelerate(files ...string) {
	if _, ok := r.numbers[ZeRO]; !ok && !slices.ContainsFunc(files, func(key string) bool { return r.valueOf(key) != "" }) {
		r.numbers[ZeRO] = 2
		r.assume("zero=2, as Accelerate has it unless zero_stage says otherwise")
	}
	r.paramsStay()
}

func accelerateFinish(r *Recipe) {
	if r.texts[Precision] == "" {
		delete(r.texts, Precision)
	}
	delete(r.numbers, PerNode)
	switch kind := strings.ToUpper(r.valueOf("distributed_type")); {
	case kind == "FSDP":
		r.fsdpDefaults("fsdp_config.")
		r.setDefault(ZeRO, 3)
	case kind == "DEEPSPEED":
		r.stageOfAccelerate("deepspeed_config.deepspeed_config_file")
	case strings.HasPrefix(kind, "MULTI"):
		r.setDefault(ZeRO, 0)
	}
	if rep, shard := r.degree(replicas), r.numbers[shards]; rep > 1 && mul(shard, r.degree(CP)) > 1 {
		r.numbers[Shard] = mul(shard, r.degree(CP))
	}
	r.deepspeedPath("deepspeed_config.deepspeed_config_file")
}
