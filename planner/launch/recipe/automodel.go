package recipe

import (
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// automodelYAML is a recipe of NeMo Automodel.
var automodelYAML = format{
	name: "automodel", doc: "NeMo Automodel: YAML recipe", syntax: isYAML,
	keys: map[string]rule{
		"step_scheduler.global_batch_size": number(GlobalBatch), "step_scheduler.local_batch_size": number(localBatch), "step_scheduler.grad_acc_steps": number(GradAccum),
		"model.pretrained_model_name_or_path": text(ModelName), "model.config.pretrained_model_name_or_path": text(ModelName), "model.config": text(ModelName), "model.model_name": text(ModelName), "model.torch_dtype": oneOf(Precision, precisions), "model.dtype": oneOf(Precision, precisions),
		"distributed.strategy": nothing, "distributed._target_": nothing, "distributed.tp_size": number(TP), "distributed.cp_size": number(CP), "distributed.pp_size": number(PP), "distributed.ep_size": number(EP),
		"distributed.dp_size": number(DP), "distributed.dp_replicate_size": number(replicas), "distributed.activation_checkpointing": word(Recompute, "full", "none"), "distributed.sequence_parallel": yesNo(SP),
		"distributed.pipeline.pp_microbatch_size": number(MicroBatch), "distributed.pipeline.pp_schedule": text(Schedule), "distributed.pipeline.layers_per_stage": number(perChunk), "distributed.pipeline.virtual_pipeline_parallel_size": number(VPP),
		"autopipeline.pp_microbatch_size": number(MicroBatch), "autopipeline.pp_schedule": text(Schedule), "autopipeline.layers_per_stage": number(perChunk), "distributed.offload_policy._target_": word2(Offload, "optimizer+params"), "distributed.cpu_offload": word(Offload, "optimizer+params", "none"),
		"optimizer._target_": className(Optimizer), "peft.dim": number(LoRARank), "peft._target_": nothing, "peft.target_modules": text(Modules), "distributed_config._target_": nothing, "distributed_config.sequence_parallel": yesNo(SP), "distributed_config.activation_checkpointing": word(Recompute, "full", "none"), "peft.match_all_linear": word(Modules, "all-linear", ""), "parallelizer.activation_checkpointing": word(Recompute, "full", "none"), "model.backend.te_fp8": nothing, "model.backend.te_fp8.recipe": nothing, "quantization.load_in_4bit": when(Bits, 4), "quantization.load_in_8bit": when(Bits, 8),
		"fp8.enabled": nothing, "packed_sequence.packed_sequence_size": nothing, "dataset.seq_len": number(SeqLen), "dataset.seq_length": number(SeqLen), "dataset.max_seq_length": number(SeqLen), "dataset.sequence_length": number(SeqLen),
		"ci.nproc_per_node": number(PerNode), "ci.nodes": number(Nodes), "benchmark.num_nodes": number(Nodes),
	},
	needs: []string{"recipe", "recipe._target_", "step_scheduler.global_batch_size", "step_scheduler.local_batch_size", "model.pretrained_model_name_or_path", "model.config.pretrained_model_name_or_path", "distributed.strategy", "distributed._target_", "distributed.tp_size", "distributed_config._target_"},
	inert: []string{"recipe", "recipe.*", "autocast.*", "moe_metrics.*", "seed", "benchmark.*", "step_scheduler.*", "dist_env.*", "rng.*", "model._target_", "model.trust_remote_code", "model.*", "checkpoint.*", "distributed.*", "distributed.moe.*", "distributed_config.*", "distributed.pipeline.*", "autopipeline.*", "parallelizer.*", "loss_fn.*", "dataset.*", "validation_dataset.*", "validation_dataloader.*", "dataloader.*", "dataloader", "optimizer.*", "lr_scheduler.*", "lr_scheduler", "ci.*", "peft.*", "quantization.*", "fp8.*", "packed_sequence.*", "wandb.*", "clip_grad_norm.*", "nvtx", "freeze_config.*", "processor.*", "logging.*", "profiling.*", "mlflow.*", "slurm.*", "cluster.*"},
	weighs: map[string]effect{
		"compile.*":                             {"the model is compiled", 0.1, 0.05},
		"model.backend.dispatcher":              {"which dispatcher experts have", 0.1, 0.05},
		"model.backend.fake_balanced_gate":      {"the router is forced to balance: real routing is slower", 0.05, 0.02},
		"model.backend.enable_deepep":           {"which dispatcher experts have", 0.1, 0.05},
		"parallelizer.reshard_after_forward":    {"experts are sharded by a setting of their own", 0.05, 0.1},
		"distributed.moe.reshard_after_forward": {"experts are sharded by a setting of their own", 0.05, 0.1},
		"distributed.defer_fsdp_grad_sync":      {"gradients are reduced once a step", 0.05, 0.05},
		"peft.use_triton":                       {"adapters have a kernel of their own", 0.05, 0.02},
		"model.use_liger_kernel":                {"kernels of Liger", 0.05, 0.1},
		"dataset.*packed*":                      {"samples are packed documents", 0.1, 0.1},
		"optimizer.master_weight_bits":          {"master weights have fewer bits", 0.02, 0.15},
		"optimizer.*_dtype":                     {"optimizer states have another format", 0.02, 0.2},
		"teacher_model.*":                       {"a second model computes the targets", 0.3, 0.3},
		"freeze_config.freeze_*":                {"a part of the model is frozen", 0.1, 0.1},
	},
	finish: automodelFinish, edits: automodelEdits,
}

// word2 sets a field to a text whatever the value is.
func word2(of Field, v string) rule { return func(r *Recipe, _ *keyfile.Entry) { r.texts[of] = v } }

// className sets a field to the last part of a dotted name, in lower case.
func className(of Field) rule {
	return func(r *Recipe, e *keyfile.Entry) {
		if !e.Open() {
			r.texts[of] = strings.ToLower(e.Value[strings.LastIndex(e.Value, ".")+1:])
		}
	}
}

func automodelFinish(r *Recipe) {
	if te := r.valueOf("model.backend.te_fp8") + r.valueOf("model.backend.te_fp8.recipe"); r.flagOf("fp8.enabled") || te != "" {
		r.texts[Precision] = "fp8"
	}
	size := keyfile.Entry{Value: r.valueOf("packed_sequence.packed_sequence_size")}
	if n, ok := size.Whole(); ok && n > 0 {
		r.numbers[SeqLen], r.numbers[Packed] = n, 1
	}
	r.adapterOf(r.hasKey("peft._target_") || r.hasKey("peft.dim"))
	pp := r.degree(PP)
	if local, ok := r.numbers[localBatch]; ok && pp == 1 {
		r.numbers[MicroBatch] = local
	} else if pp == 1 {
		delete(r.numbers, MicroBatch)
	}
	strategy := strings.ToLower(r.valueOf("distributed.strategy") + r.valueOf("distributed._target_") + r.valueOf("distributed_config._target_"))
	switch {
	case strings.Contains(strategy, "fsdp2") && pp > 1:
		r.setDefault(ZeRO, 1)
		r.assume("FSDP with a pipeline: states are taken as sharded (zero=1) and weights as whole within a step")
	case strings.Contains(strategy, "fsdp2"), strings.Contains(strategy, "megatron_fsdp"), strings.Contains(strategy, "megatronfsdp"), strings.Contains(strategy, "nvfsdp"):
		r.setDefault(ZeRO, 3)
	case strings.Contains(strategy, "ddp"):
		r.setDefault(ZeRO, 0)
	}
	if n := r.degree(replicas); n > 1 && r.numbers[DP] > n && r.numbers[DP]%n == 0 {
		r.numbers[Shard] = r.numbers[DP] / n * r.degree(CP)
	}
	r.schedule()
}

// adapterOf sets the kind of adapter: qlora with 4-bit weights.
func (r *Recipe) adapterOf(has bool) {
	if !has {
		return
	}
	if r.texts[Adapter] = "lora"; r.numbers[Bits] == 4 {
		r.texts[Adapter] = "qlora"
	}
}
