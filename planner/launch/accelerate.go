package launch

import (
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// accelerate writes the configuration of accelerate launch. The names are those of commands/config/config_args.py, which
// refuses other keys, of FullyShardedDataParallelPlugin, DeepSpeedPlugin and ParallelismConfig.
var accelerate = Framework{
	Name:     "accelerate",
	Doc:      "Hugging Face Accelerate: its YAML, with DDP, FSDP2 or DeepSpeed; the program sets micro-batch and accumulation",
	Version:  "Accelerate 1.10 (accelerate config)",
	Stack:    "Accelerate@1.10",
	File:     "accelerate.yaml",
	settings: accelerateSettings,
	program:  true,
	lacks:    accelerateLacks,
	write:    writeAccelerate,
}

// accelerateSettings are keys for parts of the training stack. FSDP and ZeRO 2 and 3 are the same.
var accelerateSettings = []setting{
	{part: "launch", value: stack.Compiled, text: "dynamo_config:\n  dynamo_backend: INDUCTOR"},
	{part: "zero", value: stack.Buckets, when: func(c *spec.Config, _ *stack.Parts) bool { return viaFSDP(&c.Plan) }},
	{part: "zero", value: stack.DeepSpeed, when: func(c *spec.Config, _ *stack.Parts) bool { return viaDeepspeed(&c.Plan) }},
}

// viaFSDP reports whether FSDP shards the states of p. DeepSpeed does it for stage 1 and with an offloaded optimizer.
func viaFSDP(p *spec.Plan) bool { return p.ZeRO > 1 && p.Offload != spec.OffloadOptimizer }

// viaDeepspeed reports whether DeepSpeed shards the states of p.
func viaDeepspeed(p *spec.Plan) bool { return p.ZeRO > 0 && !viaFSDP(p) }

func accelerateLacks(c *spec.Config, _ *stack.Parts) []lack {
	var l lacking
	p := &c.Plan
	const onlyFSDP = "it goes with FSDP: zero=2 or 3, the optimizer not offloaded alone"
	l.servers(p)
	l.pipelines(p, "pipelines are those of its Megatron-LM plugin, which the program has to be written for")
	l.when(p.TP > 1 && !viaFSDP(p), "tp", p.TP, onlyFSDP)
	l.when(p.SequenceParallel, "sp", 1, "the program's plan of tensor parallelism decides it")
	l.when(p.CP > 1 && !viaFSDP(p), "cp", p.CP, onlyFSDP)
	l.when(p.EP > 1, "ep", p.EP, "experts are split by the program")
	l.when(p.Recompute == spec.RecomputeSelective, "recompute", p.Recompute, "activation checkpointing is of whole layers")
	l.when(p.Recompute == spec.RecomputeFull && !viaFSDP(p), "recompute", p.Recompute, "%s; else the program calls gradient_checkpointing_enable()", onlyFSDP)
	l.when(replicas(p) > 1 && p.ZeRO > 0 && !viaFSDP(p), "shard", p.Shard, onlyFSDP)
	l.when(p.Shard > 0 && p.Shard%p.CP != 0 && viaFSDP(p), "shard", p.Shard, "states are sharded over all of cp=%d", p.CP)
	l.when(p.Offload == spec.OffloadParams && !viaFSDP(p), "offload", p.Offload, onlyFSDP)
	l.when(p.Offload == spec.OffloadOptimizer && p.ZeRO == 0, "offload", p.Offload, "DeepSpeed offloads with zero 1 to 3")
	l.when(c.Shape.Most() != c.Shape.Least(), "shape", c.Shape.Devices, "it starts as many processes on every machine")
	l.precision(p.Precision, "mixed_precision has bf16 and fp16, and fp32 without either", spec.BF16, spec.FP16, spec.FP32, "")
	return l
}

func writeAccelerate(f Framework, c *spec.Config, _ *spec.Details) Script {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p := &c.Plan
	for _, text := range title(c, f) {
		line("# %s", text)
	}
	program := fmt.Sprintf("the program sets a micro-batch of %d (per_device_train_batch_size) and %d micro-batches per step (gradient_accumulation_steps)", p.MicroBatch, p.AccumSteps)
	line("# %s", program)
	line("compute_environment: LOCAL_MACHINE")
	switch {
	case viaFSDP(p):
		line("distributed_type: FSDP")
	case viaDeepspeed(p):
		line("distributed_type: DEEPSPEED")
	case p.Devices() > 1:
		line("distributed_type: MULTI_GPU")
	default:
		line("distributed_type: 'NO'")
	}
	line("mixed_precision: %s", map[spec.Precision]string{spec.FP16: "fp16", spec.FP32: "'no'", spec.BF16: "bf16", "": "bf16"}[p.Precision])
	line("num_machines: %d", c.Shape.Nodes())
	line("num_processes: %d", p.Devices())
	if c.Shape.Nodes() > 1 {
		line("rdzv_backend: c10d # the same file on every machine, main_process_ip and main_process_port as flags")
	}
	if viaFSDP(p) {
		line("fsdp_config:")
		line("  fsdp_version: 2")
		line("  fsdp_reshard_after_forward: %v", p.ZeRO == 3)
		line("  fsdp_offload_params: %v", p.Offload == spec.OffloadParams)
		line("  fsdp_activation_checkpointing: %v", p.Recompute == spec.RecomputeFull)
		line("  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP")
		line("  fsdp_state_dict_type: SHARDED_STATE_DICT")
	}
	if viaFSDP(p) && (p.TP > 1 || p.CP > 1 || replicas(p) > 1) {
		line("parallelism_config:")
		line("  parallelism_config_dp_replicate_size: %d", replicas(p))
		line("  parallelism_config_dp_shard_size: %d", p.Shards()/p.CP)
		line("  parallelism_config_tp_size: %d", p.TP)
		line("  parallelism_config_cp_size: %d", p.CP)
	}
	if viaDeepspeed(p) {
		line("deepspeed_config:")
		line("  zero_stage: %d", p.ZeRO)
		line("  gradient_accumulation_steps: %d", p.AccumSteps)
		line("  offload_optimizer_device: %s", map[bool]string{true: "cpu", false: "none"}[p.Offload == spec.OffloadOptimizer])
		line("  offload_param_device: none")
		line("  zero3_init_flag: %v", p.ZeRO == 3)
	}
	settings, _ := f.follow(c)
	for _, text := range written(settings, "") {
		line("%s", text)
	}
	notes := []string{"start it with: accelerate launch --config_file " + quote(f.File) + " train.py", program}
	if p.Precision == spec.FP32 {
		notes = append(notes, "precision=fp32: export NVIDIA_TF32_OVERRIDE=0")
	}
	if p.TP > 1 {
		notes = append(notes, "tp: the model is loaded with a plan of tensor parallelism (tp_plan of transformers)")
	}
	return Script{Text: b.String(), Notes: notes}
}
