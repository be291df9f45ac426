package recipe

import (
	"maps"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
	"github.com/pacer-ml/pacer/planner/launch/recipe/shell"
)

// trainerArguments are TrainingArguments of transformers on the command line of a script, with those of torchrun,
// accelerate launch or deepspeed before them.
var trainerArguments = format{
	name: "trainer", syntax: isShell, underscores: true, needs: []string{"model_name_or_path", "per_device_train_batch_size"},
	keys: trainerOptions(), inert: append([]string{"program", "master_*", "main_*", "rdzv_*", "node_rank", "machine_rank", "standalone", "hostfile", "multi_gpu", "num_cpu*", "same_network", "gpu_ids", "dynamo_backend", "use_deepspeed", "use_fsdp", "fsdp_*", "zero3_*",
		"*_file", "*_path", "data_*", "version", "lazy_*", "include_*", "max_steps", "module", "max_restarts", "tee", "enable_each*", "no_*", "conv_*", "prompt_*", "*_dir", "*_name", "project*", "wandb*", "use_auth*", "is_*", "streaming", "block_*", "config_name", "neftune*", "weight_decay", "gradient_checkpointing_*"}, trainerInert...),
	weighs: trainerOptionWeighs(), finish: trainerArgumentsFinish, outside: outsideTrainer, edits: trainerEdits,
}

// trainerOptions are the keys of the YAML with the options of the launchers, and names that training scripts use.
func trainerOptions() map[string]rule {
	keys := maps.Clone(trainerKeys)
	for key, of := range map[string]rule{
		"nproc_per_node": number(PerNode), "nnodes": number(Nodes), "num_gpus": number(PerNode), "num_nodes": number(Nodes), "include": included,
		"num_processes": number(Devices), "num_machines": number(Nodes), "mixed_precision": oneOf(Precision, map[string]string{"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "no": ""}),
		"zero_stage": number(ZeRO), "offload_optimizer_device": offloadTo("optimizer"), "offload_param_device": offloadTo("params"), "fsdp_sharding_strategy": shardingStrategy, "fsdp_offload_params": fsdpOffload, "fsdp_reshard_after_forward": reshard,
		"model_max_length": number(SeqLen), "model_max_len": number(SeqLen), "block_size": number(SeqLen), "seq_length": number(SeqLen), "max_source_length": nothing, meshOption + "tp_size": number(TP), meshOption + "cp_size": moreThanOne(CP), meshOption + "sp_size": moreThanOne(CP),
		meshOption + "dp_replicate_size": number(replicas), meshOption + "dp_shard_size": number(shards), "fsdp_activation_checkpointing": word(Recompute, "full", ""),
		"lora_enable": nothing, "use_lora": nothing, "use_peft_lora": nothing, "bits": number(Bits), "use_4bit_quantization": when(Bits, 4), "use_8bit_quantization": when(Bits, 8),
	} {
		keys[key] = of
	}
	return keys
}

func trainerOptionWeighs() map[string]effect {
	out := maps.Clone(trainerWeighs)
	out["deepspeed_config*"], out["ds_config*"] = out["deepspeed"], out["deepspeed"]
	out[accelerateFile] = effect{"the parallelism may be in this file of Accelerate", 0.3, 0.5}
	out["vision_tower"] = effect{"a model of images is trained or run too", 0.3, 0.3}
	return out
}

// meshOption begins the options of accelerate launch for the degrees of its mesh.
const meshOption = "parallelism_config_"

// fsdpConfig replaces the option fsdp_config by the settings that it has as JSON, or in a file that the script writes.
func fsdpConfig(s *shell.Script, entries []keyfile.Entry) (out []keyfile.Entry) {
	for _, e := range entries {
		document, ok := s.Written(e.Value)
		if strings.HasPrefix(e.Value, "{") {
			document, ok = e.Value, true
		}
		inner, err := keyfile.JSON(e.Value, []byte(document))
		if !ok || err != nil || e.Key != "fsdp_config" {
			out = append(out, e)
			continue
		}
		for _, setting := range inner {
			out = append(out, keyfile.Entry{Key: e.Key + "." + strings.TrimPrefix(setting.Key, "fsdp_"), Value: setting.Value, List: setting.List, IsNull: setting.IsNull, Follows: true})
		}
	}
	return out
}

// included counts the devices of --include host:0,1@other:0,1.
func included(r *Recipe, e *keyfile.Entry) {
	hosts := strings.Split(e.Value, "@")
	_, devices, ok := strings.Cut(hosts[0], ":")
	if ok {
		r.numbers[Nodes], r.numbers[PerNode] = len(hosts), 1+strings.Count(devices, ",")
	}
}

// deepspeedOptions are the names of the option that names DeepSpeed's file.
var deepspeedOptions = []string{"deepspeed", "deepspeed_config", "deepspeed_config_file", "ds_config"}

// accelerateFile is the option that names Accelerate's file.
const accelerateFile = "config_file"

func trainerArgumentsFinish(r *Recipe) {
	for _, key := range []string{"lora_enable", "use_lora", "use_peft_lora", "use_peft"} {
		switch {
		case r.has(key) && !r.flagOf(key):
			delete(r.numbers, LoRARank)
		case r.has(key):
			r.setDefault(LoRARank, 8) // the default of peft
		}
	}
	if r.texts[Precision] == "" {
		delete(r.texts, Precision)
	}
	trainerFinish(r)
	if r.numbers[PerNode] > 0 {
		r.setDefault(Nodes, 1)
	}
	if _, ok := r.numbers[Devices]; ok {
		delete(r.numbers, PerNode) // num_processes counts all
	}
	if r.flagOf("use_fsdp") {
		r.setDefault(ZeRO, 3)
	} else if r.flagOf("use_deepspeed") {
		r.stageOfAccelerate(append(deepspeedOptions, accelerateFile)...)
	}
	for _, key := range append(deepspeedOptions[1:], accelerateFile) {
		if v := r.valueOf(key); v != "" {
			r.assume("the parallelism may be in " + v + ", which is not read: check that file too, or --set zero_stage=N")
		}
	}
}
