package recipe

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// The edits of formats that package launch does not write, or writes in another version.

var automodelEdits = map[Field]planEdit{
	DP: automodelReplicas, TP: writes(TP, "distributed.tp_size"), CP: writes(CP, "distributed.cp_size"), EP: writes(EP, "distributed.ep_size"),
	PP: automodelStages, MicroBatch: automodelBatch, Recompute: wholeLayers("distributed.activation_checkpointing"), ZeRO: automodelStage,
	Precision: multiplies([]change{{key: "fp8.enabled", value: "true"}}, "false",
		wordOf(map[spec.Precision]string{spec.BF16: "bf16", spec.FP16: "fp16", spec.FP32: "fp32"}, "model.torch_dtype", "model.dtype")), VPP: cannot("layers_per_stage of the pipeline decides it"),
	Offload: cannot("an offload policy is a class, which the program makes"), SP: writes(SP, "distributed.sequence_parallel"),
}

// automodelReplicas writes the data parallel degree where the file has a number.
func automodelReplicas(r *Recipe, p *spec.Plan) ([]change, string) {
	e := keyfile.Entry{Value: r.valueOf("distributed.dp_size")}
	if n, ok := e.Whole(); !ok || n < 1 {
		return nil, ""
	}
	return writes(DP, "distributed.dp_size")(r, p)
}

// automodelStages changes a pipeline, or ends it.
func automodelStages(r *Recipe, p *spec.Plan) ([]change, string) {
	if r.degree(PP) == 1 {
		return nil, "a pipeline needs a section of its own, with the schedule and the split of the layers"
	}
	return writes(PP, "distributed.pp_size")(r, p)
}

// automodelBatch writes the micro-batch, which with a pipeline is another key.
func automodelBatch(r *Recipe, p *spec.Plan) ([]change, string) {
	if p.PP > 1 {
		return writes(MicroBatch, "distributed.pipeline.pp_microbatch_size", "autopipeline.pp_microbatch_size")(r, p)
	}
	return writes(MicroBatch, "step_scheduler.local_batch_size")(r, p)
}

// automodelStage changes to and from DDP. FSDP2 of Automodel has no key of the stage.
func automodelStage(r *Recipe, p *spec.Plan) ([]change, string) {
	strategy := r.valueOf("distributed.strategy")
	switch {
	case strategy == "":
		return nil, "the strategy is a class, which sets the stage"
	case p.ZeRO == 3:
		return []change{{key: "distributed.strategy", value: "fsdp2"}}, ""
	case p.ZeRO == 0 && p.TP*p.PP*p.CP*p.EP == 1:
		return []change{{key: "distributed.strategy", value: "ddp"}}, ""
	}
	return nil, "fsdp2 has no key of the stage, and ddp has no other parallelism"
}

var axolotlEdits = map[Field]planEdit{
	DP: meshShards("dp_shard_size"), TP: writes(TP, "tensor_parallel_size"), CP: writes(CP, "context_parallel_size", "sequence_parallel_degree"), EP: writes(EP, "expert_parallel_size"),
	PP: cannot("axolotl has no pipelines"), MicroBatch: writes(MicroBatch, "micro_batch_size"), GradAccum: axolotlSteps,
	Recompute: wholeLayers("gradient_checkpointing"), Precision: multiplies([]change{{key: "fp8", value: "true"}}, "false", switchesOf), SP: cannot("the plan of tensor parallelism of transformers decides it"),
	Offload: orShipped(fsdpMoves("fsdp_config.offload_params", "fsdp_config.fsdp_offload_params")),
	Shard:   wholeShard("dp_replicate_size", "dp_shard_size"),
	ZeRO: orShipped(fsdpStage(func(zero int) []change {
		return []change{{key: "fsdp_version", value: "2"}, {key: "fsdp_config.auto_wrap_policy", value: "TRANSFORMER_BASED_WRAP"}, {key: "fsdp_config.reshard_after_forward", value: strconv.FormatBool(zero == 3)}}
	}, []string{"fsdp_config.reshard_after_forward", "fsdp_config.fsdp_reshard_after_forward"}, []string{"fsdp_config.sharding_strategy", "fsdp_config.fsdp_sharding_strategy"})),
}

// axolotlSteps writes accumulation steps, or the samples of a device and a step where the file has those.
func axolotlSteps(r *Recipe, p *spec.Plan) ([]change, string) {
	if r.has("batch_size") {
		return []change{{key: "batch_size", value: strconv.Itoa(p.MicroBatch * p.AccumSteps)}}, ""
	}
	return writes(GradAccum, "gradient_accumulation_steps")(r, p)
}

// meshShards writes how many devices share the states where the file says it, and its degrees are those of all devices.
func meshShards(key string) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) {
		copies := r.degree(replicas)
		if !r.has(key) || mul(mul(r.degree(shards), copies), mul(r.degree(TP), r.degree(CP))) != p.Devices() {
			return nil, ""
		}
		if p.DP%copies != 0 {
			return nil, fmt.Sprintf("%d copies of the weights do not divide dp=%d", copies, p.DP)
		}
		return []change{{key: key, value: strconv.Itoa(p.DP / copies)}}, ""
	}
}

// wholeShard writes that all devices share the states.
func wholeShard(copies, key string) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) {
		switch {
		case p.Shard != 0:
			return nil, "an edit shards over all devices only"
		case r.numbers[withinNode] == 1:
			return r.renamed(strategyNames(p.ZeRO)), ""
		}
		return []change{{key: copies, value: "1"}, {key: key, value: strconv.Itoa(p.DP)}}, ""
	}
}

// strategyNames are the names of FSDP 1 for sharding over all devices.
func strategyNames(zero int) string {
	return map[int]string{0: "NO_SHARD", 2: "SHARD_GRAD_OP", 3: "FULL_SHARD"}[zero]
}

// hybridNames are those for sharding within a node.
func hybridNames(zero int) string {
	return map[int]string{0: "NO_SHARD", 2: "HYBRID_SHARD_ZERO2", 3: "HYBRID_SHARD"}[zero]
}

// renamed writes the strategy of FSDP 1 where the file has one.
func (r *Recipe) renamed(name string) (out []change) {
	for _, key := range []string{"fsdp", "fsdp_sharding_strategy", "fsdp_config.fsdp_sharding_strategy", "fsdp_config.sharding_strategy", "fsdp_config.fsdp_reshard_after_forward", "fsdp_config.reshard_after_forward"} {
		e := keyfile.Entry{Value: r.valueOf(key)}
		switch {
		case key == "fsdp" && strings.Contains(strings.ToLower(e.Value), "hybrid_"):
			out = append(out, change{key: key, value: hybridWord.ReplaceAllString(e.Value, strings.ToLower(name))})
		case key != "fsdp" && strings.Contains(strings.ToUpper(e.Value), "HYBRID_"), e.Value == "4", e.Value == "5":
			out = append(out, change{key: key, value: name})
		}
	}
	return out
}

var hybridWord = regexp.MustCompile(`(?i)_?hybrid_shard(_zero2)?`)

const inAccelerate = "the file of Accelerate has it"

var trainerEdits = map[Field]planEdit{
	TP: trainerDegree(TP, "tensor_model_parallel_size", "tp_size"), PP: trainerDegree(PP, "pipeline_model_parallel_size"), CP: trainerDegree(CP, "context_parallel_size", "cp_size", "sequence_parallel_size"),
	EP: trainerDegree(EP, "expert_model_parallel_size", "ep_size"), VPP: trainerDegree(VPP, "virtual_pipeline_model_parallel_size"), SP: trainerDegree(SP, "sequence_parallel"),
	MicroBatch: writes(MicroBatch, "per_device_train_batch_size", "micro_batch_size"), GradAccum: writes(GradAccum, "gradient_accumulation_steps"),
	Recompute: trainerRecompute, Precision: trainerPrecision, Offload: orShipped(trainerOffload),
	ZeRO: orShipped(trainerStage),
}

var trainerFSDP = fsdpStage(func(zero int) []change {
	return []change{{key: "fsdp", value: map[int]string{2: "shard_grad_op auto_wrap", 3: "full_shard auto_wrap"}[zero]}}
}, []string{"fsdp_config.reshard_after_forward"}, []string{"fsdp_sharding_strategy"})

// trainerStage writes the option of accelerate launch for DeepSpeed, or the stage of FSDP.
func trainerStage(r *Recipe, p *spec.Plan) ([]change, string) {
	if r.has("zero_stage") || r.flagOf("use_deepspeed") && r.elsewhere() == "" {
		return writes(ZeRO, "zero_stage")(r, p)
	}
	return trainerFSDP(r, p)
}

// trainerOffload writes offloading where the file has it: in its words of FSDP, or in its settings.
func trainerOffload(r *Recipe, p *spec.Plan) ([]change, string) {
	if r.has("zero_stage") || r.flagOf("use_deepspeed") && r.elsewhere() == "" {
		return offloadDevices(p, ""), ""
	}
	out, why := fsdpMoves("fsdp_config.offload_params")(r, p)
	words := strings.Fields(r.valueOf("fsdp"))
	if why != "" || len(words) == 0 || r.has("fsdp_config.offload_params") {
		return out, why
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "offload" })
	if p.Offload == spec.OffloadParams {
		words = append(words, "offload")
	}
	return []change{{key: "fsdp", value: strings.Join(words, " ")}}, ""
}

// megatronTrainer reports whether a file is for Megatron-LM under LLaMA-Factory.
func (r *Recipe) megatronTrainer() bool {
	return slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasSuffix(e.Key, "_model_parallel_size") })
}

// trainerDegree writes a degree where the file has such degrees.
func trainerDegree(of Field, keys ...string) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) {
		if !r.megatronTrainer() && !slices.ContainsFunc(keys, r.has) {
			return nil, inAccelerate
		}
		return writes(of, keys...)(r, p)
	}
}

func trainerRecompute(r *Recipe, p *spec.Plan) ([]change, string) {
	if r.has("recompute_granularity") {
		granularity := change{key: "recompute_granularity", value: string(p.Recompute)}
		if p.Recompute == spec.RecomputeNone {
			granularity = change{key: granularity.key, remove: true}
		}
		return append([]change{granularity}, r.wholeLayerKeys(p, "recompute_", change{remove: true})...), ""
	}
	if r.llamaFactory() && !r.has("gradient_checkpointing") {
		if p.Recompute == spec.RecomputeSelective {
			return nil, "activation checkpointing is of whole layers"
		}
		return []change{{key: "disable_gradient_checkpointing", value: strconv.FormatBool(p.Recompute == spec.RecomputeNone)}}, ""
	}
	return wholeLayers("gradient_checkpointing")(r, p)
}

func trainerPrecision(r *Recipe, p *spec.Plan) ([]change, string) {
	if p.Precision.Format() == spec.FP8 && r.has("mixed_precision") { // an option of accelerate launch
		return []change{{key: "mixed_precision", value: "fp8"}}, ""
	}
	factory := slices.ContainsFunc([]string{"finetuning_type", "cutoff_len", "template"}, r.has) // LLaMA-Factory
	if p.Precision.Format() == spec.FP8 && (r.megatronTrainer() || !factory) {
		return nil, "TrainingArguments has no key for it; " + inAccelerate
	}
	return multiplies([]change{{key: "fp8", value: "true"}}, "false", switchesOf)(r, p)
}

const (
	meshSize = "parallelism_config.parallelism_config_"
	byFSDP   = "it goes with FSDP: zero=2 or 3"
)

var accelerateEdits = map[Field]planEdit{
	DP: meshShards(meshSize + "dp_shard_size"), TP: accelerateDegree(TP, "megatron_lm_config.megatron_lm_tp_degree", meshSize+"tp_size"),
	CP: accelerateDegree(CP, meshSize+"sp_size", meshSize+"cp_size"), PP: accelerateStages, EP: cannot("experts are split by the program"),
	MicroBatch: accelerateBatch, GradAccum: accelerateSteps, Shard: wholeShard(meshSize+"dp_replicate_size", meshSize+"dp_shard_size"), ZeRO: accelerateStage, Offload: accelerateOffload,
	Recompute: accelerateRecompute, SP: accelerateSequence, Precision: multiplies([]change{{key: "mixed_precision", value: "fp8"}}, "bf16",
		wordOf(map[spec.Precision]string{spec.BF16: "bf16", spec.FP16: "fp16", spec.FP32: "'no'"}, "mixed_precision")),
}

func (r *Recipe) distributedBy(kind string) bool {
	return strings.EqualFold(r.valueOf("distributed_type"), kind)
}

// accelerateDegree writes a degree of Megatron-LM, or of FSDP, for which the sizes of the mesh go together.
func accelerateDegree(of Field, keys ...string) planEdit {
	return func(r *Recipe, p *spec.Plan) ([]change, string) {
		if i := slices.IndexFunc(keys, func(key string) bool { v := r.valueOf(key); return v != "" && v != "1" }); i >= 0 {
			return writes(of, keys[i])(r, p)
		}
		if !r.distributedBy("FSDP") || p.ZeRO < 2 {
			return nil, byFSDP
		}
		out, why := writes(of, keys[len(keys)-1])(r, p)
		if !r.has(meshSize + "dp_shard_size") {
			out = append(out, change{key: meshSize + "dp_shard_size", value: strconv.Itoa(p.DP)})
		}
		return out, why
	}
}

func accelerateStages(r *Recipe, p *spec.Plan) ([]change, string) {
	if !r.has("megatron_lm_config.megatron_lm_pp_degree") {
		return nil, "pipelines are those of its Megatron-LM plugin, which the program has to be written for"
	}
	return writes(PP, "megatron_lm_config.megatron_lm_pp_degree")(r, p)
}

func accelerateBatch(_ *Recipe, p *spec.Plan) ([]change, string) {
	return nil, fmt.Sprintf("the program sets it: per_device_train_batch_size=%d", p.MicroBatch)
}

func accelerateSteps(r *Recipe, p *spec.Plan) ([]change, string) {
	keys := []string{"deepspeed_config.gradient_accumulation_steps", "megatron_lm_config.megatron_lm_num_micro_batches", "gradient_accumulation_steps"}
	if !slices.ContainsFunc(keys, r.has) {
		return nil, fmt.Sprintf("the program sets it: gradient_accumulation_steps=%d", p.AccumSteps)
	}
	return writes(GradAccum, keys...)(r, p)
}

var accelerateFSDP = fsdpStage(func(zero int) []change {
	return []change{{key: "distributed_type", value: "FSDP"}, {key: "fsdp_config.fsdp_version", value: "2"}, {key: "fsdp_config.fsdp_auto_wrap_policy", value: "TRANSFORMER_BASED_WRAP"},
		{key: "fsdp_config.fsdp_reshard_after_forward", value: strconv.FormatBool(zero == 3)}}
}, []string{"fsdp_config.fsdp_reshard_after_forward"}, []string{"fsdp_config.fsdp_sharding_strategy"})

func accelerateStage(r *Recipe, p *spec.Plan) ([]change, string) {
	switch {
	case r.distributedBy("MEGATRON_LM") && p.ZeRO < 2:
		return []change{{key: "megatron_lm_config.megatron_lm_use_distributed_optimizer", value: strconv.FormatBool(p.ZeRO == 1)}}, ""
	case r.distributedBy("DEEPSPEED") && r.elsewhere() == "":
		return writes(ZeRO, "deepspeed_config.zero_stage")(r, p)
	}
	return accelerateFSDP(r, p)
}

func accelerateOffload(r *Recipe, p *spec.Plan) ([]change, string) {
	if !r.distributedBy("DEEPSPEED") || r.elsewhere() != "" {
		return fsdpMoves("fsdp_config.fsdp_offload_params", "fsdp_config.fsdp_cpu_offload")(r, p)
	}
	return offloadDevices(p, "deepspeed_config."), ""
}

// offloadDevices are Accelerate's keys of what DeepSpeed offloads.
func offloadDevices(p *spec.Plan, prefix string) []change {
	device := map[bool]string{true: "cpu", false: "none"}
	return []change{{key: prefix + "offload_optimizer_device", value: device[p.Offload != spec.OffloadNone]}, {key: prefix + "offload_param_device", value: device[p.Offload == spec.OffloadParams]}}
}

func accelerateRecompute(r *Recipe, p *spec.Plan) ([]change, string) {
	switch {
	case r.distributedBy("MEGATRON_LM") && p.Recompute != spec.RecomputeFull:
		return []change{{key: "megatron_lm_config.megatron_lm_recompute_activations", value: strconv.FormatBool(p.Recompute == spec.RecomputeSelective)}}, ""
	case !r.distributedBy("FSDP"):
		return nil, "the program calls gradient_checkpointing_enable()"
	}
	return wholeLayers("fsdp_config.fsdp_activation_checkpointing")(r, p)
}

func accelerateSequence(r *Recipe, p *spec.Plan) ([]change, string) {
	if !r.distributedBy("MEGATRON_LM") {
		return nil, "the program's plan of tensor parallelism decides it"
	}
	return writes(SP, "megatron_lm_config.megatron_lm_sequence_parallelism")(r, p)
}
