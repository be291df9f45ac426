package launch

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// torchrun starts the user's program. The comments of the script have the calls that
// wrap its model.
var torchrun = Framework{
	Name:     "torchrun",
	Doc:      "PyTorch: torchrun and a train.py of your own, with the DDP or FSDP2 calls the plan stands for",
	Version:  "PyTorch 2.9 (torch.distributed.run, torch.distributed.fsdp.fully_shard)",
	Stack:    "PyTorch@2.9",
	File:     "launch.sh",
	settings: torchrunSettings,
	program:  true,
	lacks:    torchrunLacks,
	write:    writeTorchrun,
}

// torchrunSettings are code for parts of the training stack. PyTorch's optimizers keep moments in the format of weights,
// FSDP and ZeRO 2 and 3 are the same, and DDP has hooks that reduce in 16 bits.
var torchrunSettings = []setting{
	{part: "launch", value: stack.Compiled, text: "model.compile()"},
	{part: "reduce", value: stack.Half, text: "model.register_comm_hook(None, bf16_compress_hook) # torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
		when: func(c *spec.Config, _ *stack.Parts) bool {
			return c.Plan.ZeRO < 2 && dtype(c.Plan.Precision) == "torch.bfloat16"
		}},
	{part: "reduce", value: stack.Half, when: func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.ZeRO > 1 }},
	{part: "optimizer", value: stack.SGD, text: "SGD"},
	{part: "optimizer", value: stack.Adafactor, text: "Adafactor"},
	{part: "zero", value: stack.Buckets, when: func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.ZeRO > 1 }},
}

func torchrunLacks(c *spec.Config, _ *stack.Parts) []lack {
	var l lacking
	p := &c.Plan
	l.servers(p)
	l.dataParallelOnly(p, "no single call splits a model, so it would have to be written into the program")
	l.when(p.SequenceParallel, "sp", 1, "it goes with tp")
	l.when(p.Offload == spec.OffloadOptimizer, "offload", p.Offload, "CPUOffloadPolicy moves parameters and gradients too, which is offload=params")
	l.when(p.ZeRO == 1 && replicas(p) > 1, "shard", p.Shard, "ZeroRedundancyOptimizer shards over all")
	l.precision(p.Precision, "torch has no such format without a library", spec.BF16, spec.FP16, spec.FP32, spec.TF32, "")
	return l
}

func writeTorchrun(f Framework, c *spec.Config, _ *spec.Details) Script {
	var b bash
	p := &c.Plan
	b.head(c, f)
	b.comment("What train.py does with its model and optimizer to run this plan:")
	b.comment("")
	for _, line := range torchWrap(&f, c) {
		b.comment("  %s", line)
	}
	b.comment("")
	b.torchrun(c.Shape)
	b.tf32(p.Precision)
	b.comment("Arguments of your program: names are yours to change, numbers are the plan's.")
	args := [][]string{{"--micro-batch-size", itoa(p.MicroBatch)}, {"--gradient-accumulation-steps", itoa(p.AccumSteps)}}
	if seq := c.Seq(); seq > 0 {
		args = append(args, []string{"--seq-length", itoa(seq)})
	}
	b.array("TRAIN", args...)
	b.line(`exec "${TORCHRUN[@]}" "${PROGRAM:-train.py}" "${TRAIN[@]}" "$@"`)
	return Script{Text: b.String(), Notes: []string{"the DDP or FSDP calls of the plan are in the comments: train.py has to make them"}}
}

// torchWrap returns the Python code that applies a plan to a model.
func torchWrap(f *Framework, c *spec.Config) (out []string) {
	p, parts := &c.Plan, f.parts(c)
	if c.Model.Adapter.Kind != spec.FullTraining {
		out = append(append(out, "import peft, transformers"), adapterCode(c, parts)...)
	}
	out = append(out, torchRecompute(p)...)
	settings, _ := f.follow(c)
	optimizer := "torch.optim." + append(written(settings, "optimizer"), "AdamW")[0]
	out = append(out, written(settings, "launch")...)
	if p.ZeRO >= 2 {
		out = append(out, torchFSDP(p, optimizer, parts.Reduce)...)
	} else {
		out = append(out, torchDDP(p, optimizer, written(settings, "reduce"))...)
	}
	return append(out, torchAccumulate(p)...)
}

func torchRecompute(p *spec.Plan) []string {
	switch p.Recompute {
	case spec.RecomputeFull:
		return []string{"from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper",
			"for i, layer in enumerate(model.layers): model.layers[i] = checkpoint_wrapper(layer)"}
	case spec.RecomputeSelective:
		return []string{"# in every layer: torch.utils.checkpoint.checkpoint(attention_core, q, k, v, use_reentrant=False)"}
	}
	return nil
}

// dtype returns torch's name of the format of parameters in the forward pass.
func dtype(p spec.Precision) string {
	switch p {
	case spec.FP16:
		return "torch.float16"
	case spec.FP32, spec.TF32:
		return "torch.float32"
	}
	return "torch.bfloat16"
}

func torchFSDP(p *spec.Plan, optimizer, reduce string) []string {
	out := []string{"from torch.distributed.device_mesh import init_device_mesh",
		"from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard"}
	if n := replicas(p); n > 1 {
		out = append(out, fmt.Sprintf(`mesh = init_device_mesh("cuda", (%d, %d), mesh_dim_names=("replicate", "shard"))`, n, p.Shards()))
	} else {
		out = append(out, fmt.Sprintf(`mesh = init_device_mesh("cuda", (%d,), mesh_dim_names=("shard",))`, p.DP))
	}
	reshard := map[bool]string{true: "True", false: "False"}[p.ZeRO == 3]
	format := "torch.float32"
	if reduce == stack.Half {
		format = dtype(p.Precision)
	}
	out = append(out, fmt.Sprintf("how = dict(mesh=mesh, reshard_after_forward=%s, mp_policy=MixedPrecisionPolicy(param_dtype=%s, reduce_dtype=%s))", reshard, dtype(p.Precision), format))
	if p.Offload == spec.OffloadParams {
		out = append(out, "how.update(offload_policy=CPUOffloadPolicy())")
	}
	out = append(out, "for layer in model.layers: fully_shard(layer, **how)", "fully_shard(model, **how)", "optimizer = "+optimizer+"(model.parameters())")
	if p.Precision == spec.FP16 {
		out = append(out, `scaler = torch.amp.GradScaler("cuda")`)
	}
	return out
}

func torchDDP(p *spec.Plan, optimizer string, reduce []string) []string {
	var out []string
	if p.DP > 1 {
		out = append(out, "from torch.nn.parallel import DistributedDataParallel", "model = DistributedDataParallel(model, device_ids=[local_rank])")
		out = append(out, reduce...)
	}
	if p.ZeRO == 1 {
		out = append(out, "from torch.distributed.optim import ZeroRedundancyOptimizer", "optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class="+optimizer+")")
	} else {
		out = append(out, "optimizer = "+optimizer+"(model.parameters())")
	}
	if d := dtype(p.Precision); d != "torch.float32" {
		out = append(out, fmt.Sprintf(`with torch.autocast("cuda", dtype=%s): loss = model(batch)`, d))
	}
	if p.Precision == spec.FP16 {
		out = append(out, `scaler = torch.amp.GradScaler("cuda")`)
	}
	return out
}

// torchAccumulate returns how gradients accumulate over micro-batches: DDP reduces
// them with the last one, FSDP with every one.
func torchAccumulate(p *spec.Plan) []string {
	if p.AccumSteps == 1 || p.DP == 1 {
		return nil
	}
	if p.ZeRO < 2 {
		return []string{fmt.Sprintf("# %d micro-batches a step: all but the last under model.no_sync()", p.AccumSteps)}
	}
	return []string{fmt.Sprintf("# %d micro-batches a step, gradients reduced with each: they are kept sharded", p.AccumSteps)}
}
