package recipe

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// lightningYAML is a configuration of Lightning's command line interface, or of LitGPT.
var lightningYAML = format{
	name: "lightning", doc: "PyTorch Lightning: YAML of LightningCLI, or of LitGPT", syntax: isYAML,
	needs: []string{"trainer.strategy", "trainer.strategy.class_path", "trainer.accumulate_grad_batches", "trainer.max_epochs", "train.max_seq_length", "checkpoint_dir"},
	keys: map[string]rule{
		"trainer.devices": number(PerNode), "trainer.num_nodes": number(Nodes), "trainer.precision": oneOf(Precision, lightningPrecisions), "trainer.accumulate_grad_batches": number(GradAccum),
		"trainer.strategy": nothing, "trainer.strategy.class_path": nothing, "trainer.strategy.init_args.stage": number(ZeRO), "trainer.strategy.init_args.sharding_strategy": shardingStrategy,
		"trainer.strategy.init_args.cpu_offload": fsdpOffload, "trainer.strategy.init_args.offload_optimizer": offloadFlag("optimizer"), "trainer.strategy.init_args.offload_parameters": offloadFlag("params"),
		"trainer.strategy.init_args.tensor_parallel_size": number(TP), "trainer.strategy.init_args.activation_checkpointing_policy": word2(Recompute, "full"),
		"data.batch_size": number(MicroBatch), "data.init_args.batch_size": number(MicroBatch), "data.init_args.config.batch_size": number(MicroBatch), "data.init_args.max_length": number(SeqLen), "data.init_args.config.max_length": number(SeqLen), "data.init_args.max_seq_length": number(SeqLen),
		"model.init_args.model_name_or_path": text(ModelName), "model.init_args.model_name": text(ModelName), "model.init_args.config.model.model_config.hf_path": text(ModelName), "model.init_args.config.model.model_config.enable_gradient_checkpointing": word(Recompute, "full", "none"),
		"devices": number(PerNode), "num_nodes": number(Nodes), "precision": oneOf(Precision, lightningPrecisions), "model_name": text(ModelName), "checkpoint_dir": text(ModelName), "lora_r": number(LoRARank), "quantize": nothing,
		"train.global_batch_size": number(GlobalBatch), "train.micro_batch_size": number(MicroBatch), "train.max_seq_length": number(SeqLen),
	},
	inert: []string{"seed*", "float32_*", "logging_level", "trainer.*", "data.*", "data", "model.class_path", "model.init_args.*", "optimizer*", "optimizer.*", "lr_scheduler*", "ckpt_path", "lora_*", "out_dir", "train.*", "eval.*", "logger_name", "access_token", "resume", "tokenizer_dir", "initial_checkpoint_dir"},
	weighs: map[string]effect{
		"model.init_args.*freeze*":             {"a part of the model is frozen", 0.1, 0.1},
		"model.init_args.*liger*":              {"kernels of Liger", 0.05, 0.1},
		"trainer.strategy.init_args.*offload*": {"states are on the host", 0.3, 0.3},
		"bnb":                                  {"weights are quantized", 0.2, 0.2},
	},
	finish: lightningFinish,
	edits: map[Field]planEdit{
		MicroBatch: writes(MicroBatch, "data.init_args.config.batch_size", "data.init_args.batch_size", "data.batch_size", "train.micro_batch_size"), GradAccum: writes(GradAccum, "trainer.accumulate_grad_batches"),
		ZeRO: lightningStage, Precision: multiplies(nil, "", wordOf(map[spec.Precision]string{spec.BF16: "bf16-mixed", spec.FP16: "16-mixed", spec.FP32: "32-true"}, "trainer.precision", "precision")),
	},
}

var lightningPrecisions = map[string]string{"bf16": "bf16", "bf16-mixed": "bf16", "bf16-true": "bf16", "16": "fp16", "16-mixed": "fp16", "16-true": "fp16", "32": "fp32", "32-true": "fp32", "transformer-engine": "fp8"}

// deepspeedStage finds the ZeRO stage in the name of a strategy.
var deepspeedStage = regexp.MustCompile(`^deepspeed(?:_stage_([123]))?(_offload)?$`)

// lightningStrategy reads what the name or the class of a strategy means, unless its settings say more.
func (r *Recipe) lightningStrategy(strategy string) {
	name := strings.ToLower(strategy[strings.LastIndex(strategy, ".")+1:])
	switch m := deepspeedStage.FindStringSubmatch(name); {
	case m != nil:
		stage := 2 // of DeepSpeedStrategy
		if m[1] != "" {
			stage, _ = strconv.Atoi(m[1])
		}
		r.setDefault(ZeRO, stage)
		if m[2] != "" {
			r.offload("optimizer")
		}
	case strings.HasPrefix(name, "deepspeed"):
		r.setDefault(ZeRO, 2)
	case strings.HasPrefix(name, "fsdp"), strings.HasPrefix(name, "modelparallel"):
		r.setDefault(ZeRO, 3)
	case strings.HasPrefix(name, "ddp"), name == "auto":
		r.setDefault(ZeRO, 0)
	}
}

func lightningFinish(r *Recipe) {
	r.lightningStrategy(r.valueOf("trainer.strategy") + r.valueOf("trainer.strategy.class_path"))
	if r.numbers[PerNode] > 0 {
		r.setDefault(Nodes, 1)
	}
	if r.has("train.micro_batch_size") && !r.has("trainer.strategy") { // LitGPT
		r.setDefault(ZeRO, 3)
		r.assume("LitGPT shards weights by FSDP")
	}
	r.adapterOf(r.numbers[LoRARank] > 0)
	if v := r.valueOf("quantize"); r.texts[Adapter] != "" && strings.HasPrefix(v, "bnb.nf4") {
		r.texts[Adapter], r.numbers[Bits] = "qlora", 4
	}
	if strings.HasSuffix(r.valueOf("trainer.precision")+r.valueOf("precision"), "-true") {
		weightsIn16Bits(r, &keyfile.Entry{Key: r.named("trainer.precision", "precision"), Value: r.texts[Precision]})
	}
}

// lightningStage writes the strategy where the file names it.
func lightningStage(r *Recipe, p *spec.Plan) ([]change, string) {
	old := strings.ToLower(r.valueOf("trainer.strategy"))
	name := "deepspeed_stage_" + strconv.Itoa(p.ZeRO)
	switch {
	case old == "":
		return nil, "the strategy is a class or the program's own"
	case p.ZeRO == 0:
		name = "ddp"
	case p.ZeRO == 3 && !strings.HasPrefix(old, "deepspeed"):
		name = "fsdp"
	}
	return []change{{key: "trainer.strategy", value: name}}, ""
}
