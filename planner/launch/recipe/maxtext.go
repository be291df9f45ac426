package recipe

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// maxtextYAML is a configuration of MaxText.
var maxtextYAML = format{
	name: "maxtext", doc: "MaxText: YAML, or key=value arguments in a shell script", syntax: isYAML, needs: []string{"per_device_batch_size", "base_config", "model_name", "student_overrides.model_name", "ici_fsdp_parallelism", "base_emb_dim", "max_target_length"},
	keys: maxtextKeys(), inert: maxtextInert, weighs: maxtextWeighs, finish: maxtextFinish, edits: maxtextEdits,
}

// maxtextArguments are the same keys as arguments.
var maxtextArguments = format{
	name: "maxtext", syntax: isShell, assignments: true,
	keys: maxtextKeys(), inert: maxtextInert, weighs: maxtextWeighs, finish: maxtextFinish, edits: maxtextEdits,
}

// meshAxes are the axes of the mesh, within a slice (ici) and across slices (dcn), and the degree of each.
var meshAxes = map[string]Field{"data": DP, "fsdp": DP, "fsdp_transpose": DP, "tensor": TP, "tensor_transpose": TP, "tensor_sequence": TP, "context": CP, "sequence": CP, "pipeline": PP, "expert": EP}

// maxtextKeys are the keys with those of the mesh.
func maxtextKeys() map[string]rule {
	keys := map[string]rule{
		"model_name": text(ModelName), "student_overrides.model_name": text(ModelName), "max_target_length": number(SeqLen), "per_device_batch_size": text(perDevice), "gradient_accumulation_steps": number(GradAccum),
		"remat_policy": remat, "quantization": oneOf(Precision, map[string]string{"int8": "int8", "int4": "int4", "fp8": "fp8", "fp8_full": "fp8", "nanoo_fp8": "fp8", "fp8_gpu": "fp8", "": "", "none": ""}), "dtype": oneOf(dtype, precisions), "weight_dtype": weightsIn16Bits, "mu_dtype": weightsIn16Bits, "grad_dtype": weightsIn16Bits, "opt_type": lower(Optimizer),
		"optimizer_memory_host_offload": offloadFlag("optimizer"), "parameter_memory_host_offload": offloadFlag("params"), "shard_optimizer_over_data": nothing, "config": nothing, "hardware": nothing, "mlp_activations": nothing, "int8_training": word(Precision, "int8", ""), "logits_via_embedding": yesNo(Tied), "global_parameter_scale": nothing, "first_num_dense_layers": number(denseFirst), "shared_experts": number(sharedExperts), "mtp_num_layers": number(MTP), "q_lora_rank": positive(QRank), "kv_lora_rank": positive(KVRank), "qk_nope_head_dim": number(qkHeadDim),
	}
	for _, prefix := range []string{"", "student_overrides."} {
		for key, of := range map[string]Field{"base_emb_dim": Hidden, "base_num_query_heads": Heads, "base_num_kv_heads": KVHeads, "base_mlp_dim": FFN, "base_num_decoder_layers": Layers, "head_dim": HeadDim, "vocab_size": Vocab, "num_experts": Experts, "num_experts_per_tok": TopK, "base_moe_mlp_dim": ExpertFFN} {
			keys[prefix+key] = number(of)
		}
	}
	for axis := range meshAxes {
		keys["ici_"+axis+"_parallelism"], keys["dcn_"+axis+"_parallelism"] = nothing, nothing
	}
	return keys
}

const (
	perDevice Field = "per_device_batch"
	dtype     Field = "dtype"
)

func init() { internal[perDevice], internal[dtype] = true, true }

var maxtextInert = []string{"base_config", "run_name", "steps", "*checkpoint*", "dataset_*", "*output_directory", "tokenizer_*", "learning_rate*", "warmup_*", "adam*", "enable_nnx", "grain_*", "hf_*", "tfds_*", "log_*", "gcs_*", "profiler*", "upload_*", "reuse_example_batch", "use_iota_embed", "scan_layers", "logits_dot*", "enable_profiler", "enable_flash_attention", "qk_rope_head_dim", "v_head_dim", "max_segments*", "num_epoch", "load_*", "student_overrides.*", "teacher_overrides.*", "distill_*", "attention", "sa_*", "wi_*", "wo_*", "z_loss*", "float32_*", "rope_*", "context", "skip_jax*", "eval_*", "packing", "enable_goodput*", "monitor_*", "collect_*", "jax_*", "vertex_*", "metrics_*", "async_*", "allow_split*", "use_vertex*", "enable_dropout", "data_*", "decoder_*", "logical_axis*", "mesh_axes*", "compile_topology*", "internal_compile*", "sharding_tolerance", "megablox", "load_balance*", "expansion_factor*", "opt_*", "mgrpc*", "matmul_precision", "activations_in_float32", "save_*", "use_tokamax*", "param_scan_axis", "shardy", "skip_first*", "normalization_*", "quantize_kvcache", "kv_quant*", "stack_*", "init_*", "shard_mode*"}

var maxtextWeighs = map[string]effect{
	"num_vocab_tiling":        {"logits are computed in parts", 0.03, 0.2},
	"capacity_factor":         {"tokens beyond the capacity of an expert are dropped or padded", 0.15, 0.1},
	"sparse_matmul":           {"how experts multiply", 0.1, 0.1},
	"remat_policy_*":          {"which parts recompute", 0.1, 0.2},
	"fused_*":                 {"which multiplications are one", 0.03, 0.02},
	"num_layers_per_pipeline": {"the stages are split by hand", 0.1, 0.1},
	"num_pipeline_*":          {"the pipeline is split by hand", 0.1, 0.1},
	"teacher_overrides.model": {"a second model computes the targets", 0.4, 0.4},
	"teacher_overrides.*name": {"a second model computes the targets", 0.4, 0.4},
	"use_ragged*":             {"how experts exchange tokens", 0.1, 0.05},
	"*_offloaded":             {"activations are moved to the host", 0.2, 0.3},
	"use_qwix*":               {"another quantization library", 0.1, 0.1},
	"use_dcn_*":               {"how slices are laid out", 0.1, 0},
}

// remat reads which parts are recomputed.
func remat(r *Recipe, e *keyfile.Entry) {
	switch v := strings.ToLower(e.Value); {
	case e.Open():
		if v == "none" {
			r.texts[Recompute] = "none"
		}
	case v == "full":
		r.texts[Recompute] = "full"
	default:
		r.texts[Recompute] = "selective"
		effect := Uncounted{Key: e.Key, Value: e.Value, Why: "which parts recompute", Time: 0.1, Memory: 0.2}
		if strings.Contains(v, "offload") {
			effect.Why, effect.Time, effect.Memory = "activations are moved to the host", 0.2, 0.8
		}
		r.Uncounted = append(r.Uncounted, effect)
	}
}

func maxtextFinish(r *Recipe) {
	if r.texts[Precision] = cmp.Or(r.texts[Precision], r.texts[dtype]); r.texts[Precision] == "" {
		delete(r.texts, Precision)
	}
	if file := path.Base(r.valueOf("config")); file != "." && file != "base.yml" && file != "base.yaml" {
		r.assume("the settings of the network may be in " + file + ", which is not read")
		r.Uncounted = append(r.Uncounted, Uncounted{"config", file, "further settings are in this file", 0.3, 0.3})
	}
	r.maxtextNetwork()
	if r.texts[Recompute] == "" {
		r.texts[Recompute] = "full"
		r.assume("remat_policy=full: the value of base.yml")
	}
	if _, ok := r.numbers[SeqLen]; !ok {
		r.numbers[SeqLen] = baseTokens
		r.assume(fmt.Sprintf("max_target_length=%d: the value of base.yml", baseTokens))
	}
	degrees, filled, across, sharing := map[Field]int{}, false, false, 1
	for axis, of := range meshAxes {
		for _, where := range []string{"ici_", "dcn_"} {
			key := where + axis + "_parallelism"
			e := keyfile.Entry{Value: r.valueOf(key)}
			n, ok := e.Whole()
			if !ok {
				continue
			}
			across = across || where == "dcn_"
			if axis == "tensor_sequence" && n > 1 {
				r.numbers[SP] = 1
			}
			shards := n != 1 && (axis == "fsdp" || axis == "fsdp_transpose")
			if n < 1 {
				filled = true
				n = 1
			}
			if shards {
				r.numbers[ZeRO] = 3
				sharing = mul(sharing, n)
			}
			degrees[of] = mul(max(degrees[of], 1), n)
		}
	}
	if !r.has("ici_fsdp_parallelism") {
		r.setDefault(ZeRO, 3)
		r.assume("ici_fsdp_parallelism=-1: the value of base.yml, which shards weights over all devices that no other axis has")
	}
	if r.flagOf("shard_optimizer_over_data") {
		r.setDefault(ZeRO, 1) // weights that are sharded say more
	}
	if sharing > 1 && !filled && sharing < degrees[DP] { // the data axis holds copies of the shards
		r.numbers[Shard] = sharing
	}
	modelAxis := false
	for _, of := range []Field{TP, CP, PP, EP} {
		if n := degrees[of]; n > 0 {
			r.numbers[of] = n
			modelAxis = modelAxis || n > 1
		}
	}
	if n := degrees[DP]; n > 0 && across && !filled {
		r.numbers[DP] = mul(n, max(degrees[EP], 1)) // the expert axis holds other samples too
	}
	micro := keyfile.Entry{Value: r.texts[perDevice]}
	if n, ok := micro.Whole(); ok && n > 0 && !modelAxis {
		r.numbers[MicroBatch] = n
	} else if ok && modelAxis {
		r.assume("per_device_batch_size is per chip: with tensor, context, pipeline or expert parallelism it is not the micro-batch of a replica")
	}
}

// baseTokens is max_target_length of MaxText's base.yml.
const baseTokens = 2048

// baseNetwork are the widths of MaxText's base.yml, which a file without a model's name changes.
var baseNetwork = map[Field]int{Hidden: 2048, Heads: 16, KVHeads: 16, FFN: 7168, Layers: 16, HeadDim: 128, Vocab: 32000}

// maxtextNetwork fills in what base.yml has where the file gives some widths of a network and no name. The MLP of base.yml
// is gated (mlp_activations: silu and linear), and its embeddings are not tied.
func (r *Recipe) maxtextNetwork() {
	some := r.has("global_parameter_scale")
	for of := range baseNetwork {
		some = some || of != Vocab && r.numbers[of] > 0
	}
	if !some || r.texts[ModelName] != "" {
		return
	}
	filled := []string{}
	for of, n := range baseNetwork {
		if _, ok := r.numbers[of]; !ok {
			r.numbers[of] = n
			filled = append(filled, fmt.Sprintf("%s=%d", of, n))
		}
	}
	if len(filled) > 0 {
		slices.Sort(filled)
		r.assume(strings.Join(filled, ", ") + ": the values of base.yml")
	}
	r.setDefault(Tied, 0)
	if n := len(strings.FieldsFunc(r.valueOf("mlp_activations"), func(c rune) bool { return strings.ContainsRune("[], '\"", c) })); n == 0 || n == 2 {
		r.numbers[Gated] = 1
	}
}
