package recipe

import (
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// axolotlYAML is a configuration of axolotl.
var axolotlYAML = format{
	name: "axolotl", doc: "axolotl: YAML", syntax: isYAML, needs: []string{"base_model"},
	keys: map[string]rule{
		"base_model": text(ModelName), "sequence_len": number(SeqLen), "micro_batch_size": number(MicroBatch), "gradient_accumulation_steps": number(GradAccum), "batch_size": number(localBatch), "optimizer": lower(Optimizer),
		"adapter": nothing, "lora_r": number(LoRARank), "lora_target_modules": text(Modules), "lora_target_linear": nothing, "load_in_4bit": when(Bits, 4), "load_in_8bit": when(Bits, 8), "peft_use_dora": nothing,
		"lora_target_parameters": moreModules, "gptq": when(Bits, 4), "gradient_checkpointing": axolotlCheckpointing, "sample_packing": yesNo(Packed),
		"dp_shard_size": number(shards), "dp_replicate_size": number(replicas), "tensor_parallel_size": number(TP), "context_parallel_size": number(CP), "sequence_parallel_degree": number(CP), "expert_parallel_size": number(EP),
		"fsdp": fsdpWords, "fsdp_config.offload_params": fsdpOffload, "fsdp_config.fsdp_offload_params": fsdpOffload,
		"fsdp_config.reshard_after_forward": reshard, "fsdp_config.fsdp_reshard_after_forward": reshard, "fsdp_config.sharding_strategy": shardingStrategy, "fsdp_config.fsdp_sharding_strategy": shardingStrategy,
		"fsdp_config.activation_checkpointing": word(Recompute, "full", ""), "fsdp_config.fsdp_activation_checkpointing": word(Recompute, "full", ""), "fsdp_version": nothing, "fsdp_config.fsdp_version": nothing,
		"bf16": word(Precision, "bf16", ""), "fp16": word(Precision, "fp16", ""), "float16": word(Precision, "fp16", ""), "bfloat16": word(Precision, "bf16", ""), "fp8": nothing,
	},
	inert: slices.Concat(fsdpInert, []string{"base_model_*", "model_type", "tokenizer_*", "trust_remote_code", "is_*", "strict", "datasets*", "datasets.*", "dataset_*", "test_datasets*", "test_datasets.*", "pretraining_dataset*", "pretraining_dataset.*", "chat_template*", "val_set_size", "output_dir", "special_tokens*", "special_tokens.*", "tokens*", "eot_tokens*", "added_tokens*", "wandb_*", "mlflow_*", "comet_*", "trackio_*", "use_tensorboard", "swanlab_*",
		"num_epochs", "max_steps", "lr_*", "learning_rate", "warmup_*", "weight_decay", "adam_*", "cosine_*", "max_grad_norm", "train_on_inputs", "group_by_length", "logging_*", "eval*", "saves_*", "save_*", "early_stopping*", "resume_from*", "auto_resume*", "local_rank", "seed", "debug", "loss_watchdog*", "hub_*", "push_*", "load_best*", "metric_*", "tf32", "xformers_attention", "sdp_attention", "s2_attention", "lora_alpha", "lora_dropout", "lora_model_dir", "lora_fan*", "lora_on_cpu", "peft*", "gptq_*", "bnb_config*", "gradient_checkpointing_kwargs*", "gradient_checkpointing_kwargs.*", "pad_to_sequence_len", "excess_length*", "ddp*", "dataloader_*", "torch_dtype", "model_config*", "model_config.*", "model_quantization_config*", "low_cpu_mem_usage", "overrides_of_model_config*", "rope_*", "unsloth*", "use_kernels", "kernels*", "experimental_skip*", "flash_optimum", "neftune*", "relora_*", "trl*", "trl.*", "dpo_*", "orpo_*", "kto_*", "simpo_*", "sequence_parallel", "hf_use_auth*", "bf16_full*", "torch_compile_*", "flex_attn_*", "noisy*", "shuffle*", "curriculum*", "processor_*", "image_*", "skip_*", "remove_unused*", "ring_attn*", "heads_k_stride", "include_tokens*", "report_*", "temperature", "merge_*", "use_cache", "conversation*", "type", "path", "process_*", "attention", "num_labels", "fsdp_config", "min_sample_len", "ebft.*", "device_map*", "torchdistx_path", "dsv4_*", "center_*", "attn_implementation"}),
	weighs: map[string]effect{
		"deepspeed":              {"the ZeRO stage and offload are in another file: pass it to pacer check too, or --set its values", 0.3, 0.5},
		"activation_offloading":  {"activations are moved to the host", 0.2, 0.3},
		"torch_compile":          {"the model is compiled", 0.1, 0.05},
		"plugins":                {"plugins replace kernels", 0.1, 0.1},
		"liger_*":                {"kernels of Liger", 0.05, 0.1},
		"cut_cross_entropy":      {"the loss does not keep logits", 0.03, 0.15},
		"flash_attn_*":           {"fused kernels", 0.03, 0.03},
		"flash_attention":        {"which attention kernel", 0.03, 0.03},
		"lora_*_kernel":          {"adapters have a kernel of their own", 0.1, 0.1},
		"fp8_*":                  {"how weights are gathered", 0.03, 0.05},
		"unfrozen_parameters":    {"only some weights are trained", 0.3, 0.4},
		"experts_implementation": {"how experts multiply", 0.1, 0.05},
		"galore*":                {"optimizer states of low rank", 0.1, 0.3},
		"optim_target_modules":   {"optimizer states of low rank", 0.1, 0.3},
		"lisa_*":                 {"only some layers are trained", 0.2, 0.3},
		"rl":                     {"two models, or two sequences a sample", 0.4, 0.4},
		"reward_model":           {"two sequences a sample", 0.3, 0.3},
		"process_reward_model":   {"the loss is of steps of a sample", 0.1, 0.1},
		"use_scattermoe":         {"experts have a kernel of their own", 0.1, 0.1},
		"use_sonicmoe":           {"experts have a kernel of their own", 0.1, 0.1},
		"use_dsv4_kernels":       {"attention has a kernel of its own", 0.1, 0.1},
		"vllm*":                  {"samples are generated between steps", 0.3, 0.3},
		"tiled_mlp*":             {"the MLP is computed in parts", 0.05, 0.1},
		"quantize_moe_experts":   {"experts have fewer bits", 0.1, 0.3},
		"qat*":                   {"weights are quantized in training", 0.2, 0.1},
		"relora_steps":           {"adapters are merged at times", 0.1, 0.1},
		"sample_packing_*":       {"how samples are packed", 0.05, 0.02},
		"multipack*":             {"how samples are packed", 0.05, 0.02},
		"use_onebitllms":         {"weights of about one bit", 0.3, 0.3},
		"sequence_parallel_*":    {"sequences are split", 0.1, 0.1},
		"fsdp_final_state*":      {"the last checkpoint", 0, 0},
		"loraplus_*":             {"learning rates of adapters", 0, 0},
		"lora_layers_to_transf*": {"only some layers have adapters", 0.1, 0.1},
		"lora_modules_to_save":   wholeModules,
		"embeddings_skip_upcast": {"embeddings stay in 16 bits", 0.01, 0.05},
	},
	finish: axolotlFinish, outside: inDeepSpeed, edits: axolotlEdits,
}

// wholeModules is the effect of modules that are trained whole beside adapters, mostly the embeddings.
var wholeModules = effect{"modules are trained whole beside the adapters", 0.05, 0.2}

// axolotlCheckpointing reads true, and the names of ways to keep inputs of layers.
func axolotlCheckpointing(r *Recipe, e *keyfile.Entry) {
	switch strings.ToLower(e.Value) {
	case "unsloth", "offload", "offload_disk":
		r.texts[Recompute] = "full"
		r.Uncounted = append(r.Uncounted, Uncounted{e.Key, e.Value, "inputs of recomputed layers are kept outside of the device", 0.1, 0.1})
	default:
		word(Recompute, "full", "none")(r, e)
	}
}

// fsdpWords reads the words of fsdp, such as full_shard, auto_wrap and offload.
func fsdpWords(r *Recipe, e *keyfile.Entry) {
	for _, w := range append(strings.Fields(strings.ReplaceAll(e.Value, ",", " ")), e.List...) {
		if strings.HasPrefix(strings.ToLower(w), "hybrid_") {
			r.numbers[withinNode] = 1
		}
		switch strings.ToLower(w) {
		case "full_shard", "hybrid_shard":
			r.numbers[ZeRO] = 3
		case "shard_grad_op", "hybrid_shard_zero2":
			r.numbers[ZeRO] = 2
		case "no_shard":
			r.numbers[ZeRO] = 0
		case "offload":
			r.texts[Offload] = "optimizer+params"
		}
	}
}

// fsdpOffload reads CPUOffload of FSDP, which moves parameters, gradients and optimizer states.
func fsdpOffload(r *Recipe, e *keyfile.Entry) {
	if e.Flag() {
		r.texts[Offload] = "optimizer+params"
	} else if !e.Open() && r.texts[Offload] == "" {
		r.texts[Offload] = "none"
	}
}

// reshard reads reshard_after_forward: true or false, and in version 1 the sharding strategy.
func reshard(r *Recipe, e *keyfile.Entry) {
	switch strings.ToLower(e.Value) {
	case "true":
		r.numbers[ZeRO] = 3
	case "false":
		r.numbers[ZeRO] = 2
	default:
		shardingStrategy(r, e)
	}
}

// fsdpInert are keys of fsdp_config that change neither time nor memory, with and without the prefix of version 1.
var fsdpInert = slices.Concat(under("fsdp_config.fsdp_", fsdpNames...), under("fsdp_config.", fsdpNames...))

var fsdpNames = []string{"auto_wrap_policy", "transformer_layer_cls_to_wrap", "min_num_params", "backward_prefetch*", "forward_prefetch", "*state_dict_type", "sync_module_states", "use_orig_params", "cpu_ram_efficient_loading", "limit_all_gathers",
	"ignored_modules", "version", "xla*", "param_dtype", "reduce_dtype", "buffer_dtype", "mixed_precision_policy"}

// shardingStrategy reads the strategy of FSDP 1, by name or number.
func shardingStrategy(r *Recipe, e *keyfile.Entry) {
	name := strings.TrimPrefix(strings.ToUpper(e.Value), "_")
	if strings.HasPrefix(name, "HYBRID_") || name == "4" || name == "5" {
		r.numbers[withinNode] = 1
	}
	switch name {
	case "FULL_SHARD", "HYBRID_SHARD", "1", "4":
		r.setDefault(ZeRO, 3)
	case "SHARD_GRAD_OP", "HYBRID_SHARD_ZERO2", "2", "5":
		r.setDefault(ZeRO, 2)
	case "NO_SHARD", "3":
		r.setDefault(ZeRO, 0)
	default:
		if !e.Open() {
			r.problem("%s: %q is not one of FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD", e.Key, e.Value)
		}
	}
}

// moreModules adds parameters that adapters train to the modules.
func moreModules(r *Recipe, e *keyfile.Entry) {
	if !e.Open() {
		r.texts[Modules] = strings.TrimSpace(r.texts[Modules] + " " + e.Value)
	}
}

func axolotlFinish(r *Recipe) {
	r.nested()
	if local, ok := r.numbers[localBatch]; ok { // samples of a device and a step (axolotl/utils/config)
		micro := r.or(MicroBatch, 1)
		switch {
		case r.has("gradient_accumulation_steps"):
			r.problem("batch_size and gradient_accumulation_steps: axolotl takes one of them")
		case micro > 0:
			r.numbers[GradAccum] = max(local/micro, 1)
		}
	}
	if r.flagOf("fp8") {
		r.texts[Precision] = "fp8"
	}
	if kind := strings.ToLower(r.valueOf("adapter")); kind == "lora" || kind == "qlora" {
		r.adapterOf(true)
		if kind == "qlora" && r.numbers[Bits] != 8 {
			r.texts[Adapter] = kind
		}
	} else if kind != "" && kind != "null" {
		r.problem("adapter %q is not predicted: want lora, qlora or none", kind)
	}
	if r.flagOf("lora_target_linear") {
		r.texts[Modules] = "all-linear"
	}
	r.fsdpDefaults("fsdp_config.")
	shard, has := r.numbers[shards]
	if ep := r.degree(EP); has && ep == 1 {
		r.numbers[DP] = mul(shard, r.degree(replicas))
		if r.degree(replicas) > 1 && shard > 1 {
			r.numbers[Shard] = mul(shard, r.degree(CP))
		}
	} else if has {
		r.assume("dp_shard_size beside expert_parallel_size: whether the experts' ranks are among the shards is not clear, so that the number of devices is left open")
	}
	r.deepspeedPath("deepspeed")
}

// fsdpDefaults sets ZeRO 3 where FSDP is configured without a strategy.
func (r *Recipe) fsdpDefaults(prefix string) {
	if _, ok := r.numbers[ZeRO]; ok {
		return
	}
	for i := range r.entries {
		if strings.HasPrefix(r.entries[i].Key, prefix) || r.entries[i].Key == "fsdp" && !r.entries[i].Open() {
			r.numbers[ZeRO] = 3
			return
		}
	}
}

// deepspeedPath says that another file has the ZeRO stage. The stage is not known then.
func (r *Recipe) deepspeedPath(key string) {
	if v := r.valueOf(key); v != "" && v != "null" {
		r.assume("the ZeRO stage and offload are in " + v + ", which is not read")
	}
}
