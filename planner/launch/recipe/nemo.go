package recipe

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// nemoYAML is the configuration of NeMo 1 and NeMo-Framework-Launcher, with OmegaConf interpolation.
var nemoYAML = format{
	name: "nemo", doc: "NeMo 1, NeMo-Framework-Launcher and NeMo 2: YAML with OmegaConf interpolation; Megatron Bridge: YAML", syntax: isYAML,
	keys: map[string]rule{
		"trainer.num_nodes": number(Nodes), "trainer.devices": number(PerNode), "trainer.precision": oneOf(Precision, precisions),
		"model.num_layers": number(Layers), "model.hidden_size": number(Hidden), "model.num_attention_heads": number(Heads), "model.num_query_groups": number(KVHeads), "model.ffn_hidden_size": number(FFN), "model.kv_channels": number(HeadDim),
		"model.vocab_size": number(Vocab), "model.override_vocab_size": number(Vocab), "model.encoder_seq_length": number(SeqLen), "model.data.seq_length": fallback(SeqLen), "model.data.train_ds.max_seq_length": fallback(SeqLen),
		"model.tensor_model_parallel_size": number(TP), "model.pipeline_model_parallel_size": number(PP), "model.context_parallel_size": number(CP), "model.expert_model_parallel_size": number(EP),
		"model.virtual_pipeline_model_parallel_size": number(VPP), "model.micro_batch_size": number(MicroBatch), "model.global_batch_size": number(GlobalBatch),
		"model.sequence_parallel": yesNo(SP), "model.activations_checkpoint_granularity": oneOf(Recompute, map[string]string{"": "none", "null": "none", "none": "none", "selective": "selective", "full": "full"}),
		"model.fp8": nothing, "model.fsdp": nothing, "model.fsdp_sharding_strategy": nothing, "model.optim.name": lower(Optimizer),
		"model.hybrid_override_pattern": text(hybrid), "model.mamba_ngroups": number(mixerGroups), "model.ngroups_mamba": number(mixerGroups), "model.mamba_state_dim": number(mixerState), "model.mamba_head_dim": number(mixerHeadDim),
		"model.gated_linear_unit": yesNo(Gated), "_target_": nothing, "model._target_": nemoModel,
		"trainer.strategy.tensor_model_parallel_size": number(TP), "trainer.strategy.pipeline_model_parallel_size": number(PP), "trainer.strategy.context_parallel_size": number(CP), "trainer.strategy.expert_model_parallel_size": number(EP),
		"trainer.strategy.virtual_pipeline_model_parallel_size": number(VPP), "trainer.strategy.sequence_parallel": yesNo(SP), "trainer.plugins.precision": oneOf(Precision, precisions), "trainer.plugins.fp8": text(fp8Recipe),
		"model.config._target_": nemoModel, "model.config.seq_length": number(SeqLen), "model.config.recompute_granularity": text(Recompute), "data.seq_length": fallback(SeqLen), "data.global_batch_size": number(GlobalBatch), "data.micro_batch_size": number(MicroBatch),
		"optim.config.use_distributed_optimizer": when(ZeRO, 1), "trainer.strategy.ddp.use_distributed_optimizer": when(ZeRO, 1), "optim.config.optimizer": lower(Optimizer),
		"train.global_batch_size": number(GlobalBatch), "train.micro_batch_size": number(MicroBatch), "optimizer.use_distributed_optimizer": when(ZeRO, 1), "ddp.use_distributed_optimizer": when(ZeRO, 1), "ddp.use_megatron_fsdp": nothing, "ddp.data_parallel_sharding_strategy": nothing, "optimizer.optimizer": lower(Optimizer),
		"mixed_precision": bridgePrecision, "model.recompute_granularity": text(Recompute), "dataset.seq_length": fallback(SeqLen), "dataset.sequence_length": fallback(SeqLen), "model.num_moe_experts": positive(Experts), "model.moe_router_topk": number(TopK), "model.moe_ffn_hidden_size": number(ExpertFFN), "model.share_embeddings_and_output_weights": yesNo(Tied),
		"model.encoder.num_layers": number(Layers), "model.encoder.hidden_size": number(Hidden), "model.encoder.num_attention_heads": number(Heads), "model.encoder.ffn_hidden_size": number(FFN), "model.encoder.kv_channels": number(HeadDim), "model.decoder.num_layers": number(decoderLayers),
		"model.encoder.activations_checkpoint_granularity": oneOf(Recompute, map[string]string{"": "none", "null": "none", "none": "none", "selective": "selective", "full": "full"}), "model.encoder.activation": nothing, "model.seq_length": number(SeqLen), "name": nothing,
		"model.activation": nothing, "model.peft.peft_scheme": nothing, "model.peft.lora_tuning.adapter_dim": nothing, "model.tokenizer.type": text(tokenizer), "model.optim.cpu_offload": offloadFlag("optimizer"), "optimizer.optimizer_cpu_offload": offloadFlag("optimizer"),
		"model.config.num_layers": number(Layers), "model.config.hidden_size": number(Hidden), "model.config.num_attention_heads": number(Heads), "model.config.num_query_groups": number(KVHeads), "model.config.ffn_hidden_size": number(FFN), "model.config.kv_channels": number(HeadDim),
		"model.config.gated_linear_unit": yesNo(Gated), "model.config.num_moe_experts": positive(Experts), "model.config.moe_router_topk": number(TopK), "model.config.moe_ffn_hidden_size": number(ExpertFFN), "model.config.share_embeddings_and_output_weights": yesNo(Tied), "model.config.vocab_size": number(Vocab),
		"peft._target_": nothing, "peft.dim": number(LoRARank), "peft.target_modules": text(Modules), "model.mtp_num_layers": number(MTP),
	},
	needs: []string{"model.micro_batch_size", "model.global_batch_size", "model.tensor_model_parallel_size", "model.pipeline_model_parallel_size", "model.num_layers", "model.encoder.num_layers", "model.seq_length", "model.config._target_", "model.config.seq_length",
		"trainer.strategy.tensor_model_parallel_size", "trainer.strategy.pipeline_model_parallel_size", "data.micro_batch_size", "data.global_batch_size", "train.micro_batch_size", "train.global_batch_size", "model.recompute_granularity", "mixed_precision"},
	inert: []string{"peft.*", "model.should_pad_vocab", "model.first_last_layers_bf16", "model.use_te_rng_tracker", "model.offload_modules", "train.*", "optimizer.*", "scheduler.*", "checkpoint.*", "logger.*", "rng.*", "dist.*", "ddp.*", "dataset.*", "tokenizer.*", "data.*", "optim.*", "log.*", "resume.*", "model.tokenizer.*", "model.optim*", "restore_from_path", "defaults", "defaults.*", "hydra.*", "run.*", "exp_manager.*", "trainer.*", "model.data.*", "model.optim.*", "model.tokenizer.*", "model.nsys_profile.*", "model.peft.*", "model.seed",
		"model.*_dropout", "model.init_method_std", "model.use_scaled_init_method", "model.*layernorm*", "model.normalization", "model.bias*", "model.do_layer_norm*", "model.make_vocab_size*", "model.p*_process", "model.persist_layer_norm", "model.gradient*", "model.masked_softmax*", "model.*_fusion", "model.native_amp*", "model.hysteresis", "model.fp32_residual*", "model.fp16_lm*", "model.megatron_amp_O2", "model.grad_*", "model.mcore_gpt", "model.transformer_engine", "model.fp8_*", "model.seed", "model.use_cpu_initialization", "model.onnx_safe", "model.apex*", "model.gc_*", "model.sync_batch_comm", "model.resume_from*", "model.restore_from*", "model.save_nemo*", "model.max_position*", "model.position_embedding*", "model.rotary*", "model.seq_len_interp*", "model.apply_*", "model.attention_type", "model.share_*", "model.headscale", "model.transformer_block*", "model.openai_gelu", "model.normalize*", "model.overlap_p2p*", "model.batch_p2p*", "model.add_bias_linear", "model.sqrt_query*", "model.sharp", "model.answer_only*", "model.wgrad*", "model.det*", "model.name", "model.activations_checkpoint_*", "model.num_micro_batches_with*", "model.moe_*", "model.fsdp_*", "model.window*", "model.use_emha", "model.use_flash_attention", "model.reduce_amax", "model.mcore_customization*", "model.encoder_type", "model.precision", "model.query_key*", "model.skip*", "model.*_type", "model.cpu_offloading_*", "model.expert_*", "model.nccl*", "model.dist_ckpt*", "model.encoder.*", "model.decoder.*", "model.bert_*", "model.scale_positional*", "model.target", "model.nemo_version", "model.mcore_*", "model.tp_comm_atomic*", "model.hidden_dropout*", "model.get_attention*", "model.*_split_rank"},
	weighs: map[string]effect{
		"model.rampup_batch_size*":              {"the batch grows at the beginning: the prediction is of its full size", 0, 0},
		"model.ub_tp_comm_overlap":              {"tensor parallel traffic overlaps with multiplications", 0.05, 0.02},
		"model.ub_tp_comm_overlap_cfg*":         {"tensor parallel traffic overlaps with multiplications", 0.05, 0.02},
		"model.tp_comm_overlap*":                {"tensor parallel traffic overlaps with multiplications", 0.05, 0.02},
		"model.activations_checkpoint_method":   {"which layers recompute together", 0.02, 0.05},
		"model.activations_checkpoint_num*":     {"how many layers recompute", 0.05, 0.1},
		"model.num_micro_batches_with_partial*": {"some micro-batches recompute less", 0.05, 0.1},
		"model.defer_embedding_wgrad*":          {"gradients of the embedding are computed in the pipeline bubble", 0.02, 0.02},
		"model.cpu_offloading":                  {"activations are moved to the host", 0.2, 0.3},
		"model.cpu_offloading_num*":             {"activations are moved to the host", 0.2, 0.3},
		"model.recompute_modules":               {"which modules recompute", 0.05, 0.1},
		"model.recompute_method":                {"which layers recompute together", 0.02, 0.05},
		"model.recompute_num_layers":            {"how many layers recompute", 0.05, 0.1},
		"model.fine_grained_*":                  {"activations are moved to the host", 0.2, 0.3},
		"model.optim.*dtype":                    {"optimizer states or gradients have another format", 0.03, 0.1},
		"model.enable_cuda_graph":               {"kernels are launched by CUDA graphs", 0.1, 0.05},
		"model.cuda_graph_*":                    {"kernels are launched by CUDA graphs", 0.1, 0.05},
		"model.moe_*capacity*":                  {"tokens beyond the capacity of an expert are dropped or padded", 0.1, 0.1},
		"model.data.*packed*":                   {"samples are packed documents", 0.1, 0.1},
	},
	finish: nemoFinish, edits: nemoEdits,
}

// nemoArguments are values of such a configuration in a command, as Hydra takes them: model.num_layers=32.
var nemoArguments = format{
	name: "nemo", syntax: isShell, assignments: true, keys: nemoYAML.keys, needs: nemoYAML.needs, inert: append([]string{"config"}, nemoYAML.inert...), weighs: nemoYAML.weighs,
	finish: func(r *Recipe) {
		nemoFinish(r)
		r.assume("the command changes a configuration that is not read: what it does not name has the default of NeMo")
	},
}

// unreadNetwork matches names of recipes with layers other than those of a transformer or a hybrid of Mamba.
var unreadNetwork = regexp.MustCompile(`griffin|hyena|retro|speech|asr|clip|vit|diffusion|imagen|nmt`)

// fp8Recipe is how NeMo 2 scales 8 bits.
const fp8Recipe Field = "fp8_recipe"

func init() { internal[fp8Recipe] = true }

var (
	nemoClass   = regexp.MustCompile(`^(\w+?)(\d*)(?:Config|ModelProvider)(\w*)$`)
	nemoVersion = regexp.MustCompile(`^(\D+\d)(\d)$`)
)

// nemoModel reads the class of a network, such as Llama31Config8B of NeMo 2 or Llama31ModelProvider8B of Megatron Bridge, as
// a name on the Hub: Llama3.1-8B.
func nemoModel(r *Recipe, e *keyfile.Entry) {
	m := nemoClass.FindStringSubmatch(e.Value[strings.LastIndex(e.Value, ".")+1:])
	if m == nil || m[3] == "" {
		return
	}
	family := nemoVersion.ReplaceAllString(m[1]+m[2], "$1.$2")
	r.texts[ModelName] = family + "-" + m[3]
}

// bridgePrecision reads the name of a recipe of precision of Megatron Bridge, such as bf16_with_fp8_current_scaling_mixed.
func bridgePrecision(r *Recipe, e *keyfile.Entry) {
	for _, word := range []string{"nvfp4", "fp4", "fp8", "bf16", "fp16", "fp32"} {
		if strings.Contains(e.Value, word) {
			r.texts[Precision] = strings.TrimPrefix(word, "nv")
			return
		}
	}
}

func nemoFinish(r *Recipe) {
	if r.flagOf("model.fp8") || r.texts[fp8Recipe] != "" {
		r.texts[Precision] = "fp8"
	}
	if name := r.texts[Optimizer]; strings.Contains(name, "mcore_distributed") || strings.Contains(name, "distributed_fused") {
		r.setDefault(ZeRO, 1)
	}
	r.expertShards("expert_tensor_parallel_size", r.degree(TP))
	const strategy = "ddp.data_parallel_sharding_strategy"
	if v := r.valueOf(strategy); v != "" {
		if stage, ok := r.shardingStage(strategy, v); ok && r.flagOf("ddp.use_megatron_fsdp") {
			r.numbers[ZeRO] = stage
		}
	}
	if r.flagOf("model.fsdp") {
		switch strings.ToLower(r.valueOf("model.fsdp_sharding_strategy")) {
		case "full", "hybrid":
			r.numbers[ZeRO] = 3
		case "grad":
			r.numbers[ZeRO] = 2
		}
	}
	if a := strings.ToLower(r.valueOf("model.activation") + r.valueOf("model.encoder.activation")); strings.Contains(a, "swiglu") || strings.Contains(a, "geglu") || strings.Contains(a, "reglu") {
		r.setDefault(Gated, 1)
	}
	if scheme := strings.ToLower(r.valueOf("model.peft.peft_scheme")); scheme == "lora" || scheme == "qlora" {
		r.texts[Adapter] = scheme
		if n, err := strconv.Atoi(r.valueOf("model.peft.lora_tuning.adapter_dim")); err == nil && n > 0 {
			r.numbers[LoRARank] = n
		}
	} else if class := strings.ToLower(r.valueOf("peft._target_")); strings.HasSuffix(class, "lora") {
		r.texts[Adapter] = "lora"
	} else if scheme != "" && scheme != "none" && scheme != "null" {
		r.problem("peft_scheme %q is not predicted: want lora, qlora or none", scheme)
	}
	if name := strings.ToLower(r.valueOf("name")); unreadNetwork.MatchString(name) || strings.Contains(name, "jamba") && r.texts[hybrid] == "" || slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasPrefix(e.Key, "model.hyena.") }) {
		r.problem("the network of %q is not one that pacer reads from such a file: name it", name)
		delete(r.numbers, Hidden)
	}
	if r.numbers[Layers] > 0 {
		r.setDefault(Gated, 0)
		r.setDefault(Tied, 1)
	}
}

// flagOf reports whether a key of the file says yes.
func (r *Recipe) flagOf(key string) bool {
	return (&keyfile.Entry{Value: r.valueOf(key)}).Flag()
}
