package recipe

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// trainerYAML are TrainingArguments of transformers in YAML, as alignment-handbook, TRL and LLaMA-Factory write them.
var trainerYAML = format{
	name: "trainer", doc: "HF TrainingArguments: YAML or JSON of transformers, TRL, alignment-handbook, LLaMA-Factory", syntax: isYAML, needs: trainerNeeds,
	keys: trainerKeys, inert: trainerInert, weighs: trainerWeighs, finish: trainerFinish, outside: outsideTrainer, edits: trainerEdits,
}

// trainerJSON are the same in JSON.
var trainerJSON = format{
	name: "trainer", syntax: isJSON, needs: trainerNeeds,
	keys: trainerKeys, inert: trainerInert, weighs: trainerWeighs, finish: trainerFinish, outside: outsideTrainer, edits: trainerEdits,
}

// trainerNeeds are keys of TrainingArguments: a file has at least one.
var trainerNeeds = []string{"model_name_or_path", "model_name", "model_id", "model", "per_device_train_batch_size", "finetuning_type", "gradient_checkpointing"}

var trainerKeys = map[string]rule{
	"model_name_or_path": text(ModelName), "model": text(ModelName), "model_name": text(ModelName), "model_id": text(ModelName),
	"per_device_train_batch_size": number(MicroBatch), "micro_batch_size": number(MicroBatch), "gradient_accumulation_steps": number(GradAccum), "global_batch_size": number(GlobalBatch),
	"cutoff_len": number(SeqLen), "max_length": number(SeqLen), "max_seq_length": number(SeqLen), "max_seq_len": number(SeqLen), "gradient_checkpointing": word(Recompute, "full", "none"),
	"bf16": word(Precision, "bf16", ""), "fp16": word(Precision, "fp16", ""), "pure_bf16": pureBF16, "fp8": nothing, "optim": lower(Optimizer), "use_muon": word(Optimizer, "muon", ""), "use_adam_mini": word(Optimizer, "adam_mini", ""),
	"use_peft": nothing, "finetuning_type": nothing, "lora_r": number(LoRARank), "lora_rank": number(LoRARank), "lora_target": text(Modules), "lora_target_modules": text(Modules), "use_dora": nothing,
	"load_in_4bit": when(Bits, 4), "load_in_8bit": when(Bits, 8), "quantization_bit": number(Bits), "disable_gradient_checkpointing": nothing, "packing": yesNo(Packed), "neat_packing": yesNo(Packed),
	"tensor_model_parallel_size": number(TP), "pipeline_model_parallel_size": number(PP), "context_parallel_size": number(CP), "cp_size": number(CP), "expert_model_parallel_size": number(EP), "virtual_pipeline_model_parallel_size": number(VPP), "sequence_parallel_size": number(CP), "tp_size": number(TP), "ep_size": number(EP),
	"sequence_parallel": yesNo(SP), "use_distributed_optimizer": when(ZeRO, 1), "recompute_granularity": oneOf(Recompute, map[string]string{"full": "full", "selective": "selective", "none": "none"}),
	"fsdp": fsdpWords, "fsdp_config.offload_params": fsdpOffload, "fsdp_config.reshard_after_forward": reshard, "fsdp_config.activation_checkpointing": word(Recompute, "full", ""),
	"fsdp_config.fsdp_offload_params": fsdpOffload, "fsdp_config.fsdp_reshard_after_forward": reshard, "fsdp_config.fsdp_activation_checkpointing": word(Recompute, "full", ""), "dist_config.name": nothing,
}

var trainerInert = slices.Concat(fsdpInert, []string{"model_*", "torch_dtype", "dtype", "attn_implementation", "trust_remote_code", "*dataset*", "dataset_mixer.*", "dataset*.*", "train_*", "template", "chat_template", "tokenizer_*", "preprocessing_*", "dataloader_*", "dataset_num*", "max_samples", "overwrite_*", "output_dir", "logging_*", "log_*", "save_*", "eval_*", "evaluation_*", "do_*", "plot_*", "report_to", "run_name", "hub_*", "push_to_hub", "seed", "data_seed", "num_train_epochs", "max_steps", "learning_rate", "lr_*", "warmup_*", "weight_decay", "adam_*", "max_grad_norm", "ddp_*", "resume_*", "remove_unused*", "lora_alpha", "lora_dropout", "gradient_checkpointing_kwargs*", "gradient_checkpointing_kwargs.*", "stage", "max_prompt_length", "beta", "per_device_eval*", "val_size", "double_quant*", "quantization_method", "quantization_*", "bnb_*", "use_bnb*", "loss_type", "pref_*", "rlhf_*", "dist_config.*", "cp_mode", "apply_*", "bias_*", "moe_*", "overlap_*", "metric_*", "load_best*", "group_by*", "disable_*", "truncation_*", "use_fast*", "special_tokens*", "num_items*", "image_*", "video_*", "use_flash_attention*", "qat_*", "fake_quant*", "fp8_backend", "eos_token", "pad_token", "average_tokens*", "enable_thinking", "cache_dir", "adapter_name*", "infer_*", "label_*", "use_cpu", "no_cuda", "tf32", "rope_*", "freeze_*", "ref_*", "reward_*", "include_*", "deepspeed_*", "ray_*", "placement_*", "resources_*", "swanlab*", "mask_*", "temperature", "top_*", "do_sample", "max_new_tokens", "print_*", "fsdp_transformer*", "assistant_only*", "completion_only*", "sample_*", "init_*", "kernel_config*", "quant_config*", "peft_config*"})

var trainerWeighs = map[string]effect{
	"deepspeed":              {"the ZeRO stage and offload are in another file", 0.3, 0.5},
	"fsdp_config":            {"settings of FSDP are in another file: recomputation, offload and resharding", 0.2, 0.3},
	"flash_attn":             {"which attention kernel", 0.03, 0.03},
	"galore_*":               {"optimizer states of low rank", 0.1, 0.3},
	"use_galore":             {"optimizer states of low rank", 0.1, 0.3},
	"use_apollo":             {"optimizer states of low rank", 0.1, 0.3},
	"apollo_*":               {"optimizer states of low rank", 0.1, 0.3},
	"use_badam":              {"only some layers are trained at a time", 0.2, 0.3},
	"badam_*":                {"only some layers are trained at a time", 0.2, 0.3},
	"use_llama_pro":          {"only some layers are trained", 0.2, 0.3},
	"freeze_trainable_*":     {"only some layers are trained", 0.2, 0.3},
	"torch_compile*":         {"the model is compiled", 0.1, 0.05},
	"enable_liger_kernel":    {"kernels of Liger", 0.05, 0.1},
	"use_liger*":             {"kernels of Liger", 0.05, 0.1},
	"use_unsloth*":           {"kernels of Unsloth", 0.2, 0.3},
	"max_prompt_length":      {"two sequences a sample and perhaps a second model: DPO or ORPO", 0.4, 0.4},
	"lora_modules_to_save":   wholeModules,
	"modules_to_save":        wholeModules,
	"additional_target":      wholeModules,
	"stage":                  {"the kind of training", 0, 0},
	"use_vllm":               {"samples are generated between steps", 0.3, 0.3},
	"ref_model*":             {"a second model computes references", 0.3, 0.3},
	"pref_loss":              {"two sequences a sample and perhaps a second model", 0.4, 0.4},
	"activation_offloading":  {"activations are moved to the host", 0.2, 0.3},
	"auto_find_batch_size":   {"the micro-batch is found by trying", 0.1, 0.3},
	"mixture_of_depths":      {"tokens skip layers", 0.3, 0.2},
	"shift_attn":             {"attention is sparse", 0.1, 0.1},
	"recompute_method":       {"which layers recompute together", 0.02, 0.05},
	"recompute_num_layers":   {"how many layers recompute", 0.05, 0.1},
	"upcast_*":               {"a part is in fp32", 0.02, 0.05},
	"optim_target_modules":   {"optimizer states of low rank", 0.1, 0.3},
	"padding_free":           {"samples are packed without padding", 0.1, 0.1},
	"dist_config.offload*":   {"states are on the host", 0.3, 0.3},
	"use_unsloth_gc":         {"inputs of recomputed layers are on the host", 0.1, 0.1},
	"freeze_vision_tower":    {"a part of the model is frozen", 0.1, 0.1},
	"precompute_ref_log*":    {"references are computed before", 0.1, 0.1},
	"optim_args":             {"settings of the optimizer", 0.02, 0.1},
	"enable_qat":             {"weights are quantized in training", 0.2, 0.1},
	"use_v1_kernels":         {"other kernels", 0.1, 0.1},
	"fp8_enable_fsdp*":       {"weights are gathered in fp8", 0.03, 0.05},
	"chunked_cross_entropy*": {"the loss does not keep logits", 0.03, 0.15},
	"moe_*capacity*":         {"tokens beyond the capacity of an expert are dropped or padded", 0.1, 0.1},
}

func trainerFinish(r *Recipe) {
	r.nested()
	r.oneFormat("bf16", "fp16")
	if r.flagOf("fp8") {
		r.texts[Precision] = "fp8"
	}
	kind := strings.ToLower(r.valueOf("finetuning_type"))
	if kind == "" && r.llamaFactory() {
		kind = "lora"
		r.texts[Modules] = cmp.Or(r.texts[Modules], "all")
		r.assume("LLaMA-Factory trains an adapter unless finetuning_type says otherwise: lora of rank " + strconv.Itoa(r.or(LoRARank, 8)))
	}
	r.adapterOf(r.flagOf("use_peft") || kind == "lora" || kind == "" && r.numbers[LoRARank] > 0 && !r.has("use_peft"))
	if kind != "" && kind != "lora" && kind != "full" {
		r.Uncounted = append(r.Uncounted, Uncounted{"finetuning_type", kind, "only some weights are trained", 0.3, 0.4})
	}
	if stage := r.valueOf("stage"); stage == "dpo" || stage == "kto" || stage == "ppo" || stage == "rm" || stage == "orpo" {
		r.Uncounted = append(r.Uncounted, Uncounted{"stage", stage, "two sequences a sample and perhaps a second model", 0.4, 0.4})
	}
	if name := strings.ToLower(r.valueOf("dist_config.name")); strings.HasPrefix(name, "fsdp") {
		r.setDefault(ZeRO, 3)
	} else if name == "deepspeed" {
		r.assume("the ZeRO stage is in another file, which is not read")
	}
	switch {
	case r.texts[Recompute] != "":
	case !r.llamaFactory():
		r.assume("nothing recomputes, as gradient_checkpointing is not in the file: newer releases of TRL do by default, --set recompute=full")
	case r.flagOf("disable_gradient_checkpointing"):
		r.texts[Recompute] = "none"
	default:
		r.texts[Recompute] = "full"
		r.assume("LLaMA-Factory recomputes each layer unless disable_gradient_checkpointing says otherwise")
	}
	r.fsdpDefaults("fsdp_config.")
	r.deepspeedPath("deepspeed")
}

// llamaFactory reports whether a file is one of LLaMA-Factory.
func (r *Recipe) llamaFactory() bool { return r.has("stage") && r.has("cutoff_len") }

// pureBF16 reads LLaMA-Factory's switch for weights in bf16 without masters.
func pureBF16(r *Recipe, e *keyfile.Entry) {
	if e.Flag() {
		r.texts[Precision] = "bf16"
		weightsIn16Bits(r, &keyfile.Entry{Key: e.Key, Value: "bf16"})
	}
}
