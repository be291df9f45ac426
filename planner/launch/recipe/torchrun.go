package recipe

import (
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// torchrunScript is a script of package launch for PyTorch: the plan is in arguments and in the calls that its comments
// list.
var torchrunScript = format{
	name: "torchrun", doc: "PyTorch: a script that pacer plan wrote for torchrun", syntax: isShell,
	keys: map[string]rule{"--micro-batch-size": number(MicroBatch), "--gradient-accumulation-steps": number(GradAccum), "--seq-length": number(SeqLen),
		"--nproc-per-node": number(PerNode), "--nnodes": number(Nodes), "program": nothing},
	inert:  []string{"--standalone", "--node-rank", "--master-*", "--rdzv-*"},
	finish: torchrunFinish, emitted: "torchrun",
}

// torchrunMark begins the comments that say what the program does, without which its arguments are not known.
const torchrunMark = "What train.py does with its model"

func torchrunFinish(r *Recipe) {
	if r.numbers[PerNode] > 0 {
		r.setDefault(Nodes, 1)
	}
	has := func(call string) bool { return strings.Contains(r.text, call) }
	switch {
	case has("reshard_after_forward=True"):
		r.numbers[ZeRO] = 3
	case has("reshard_after_forward=False"):
		r.numbers[ZeRO] = 2
	case has("ZeroRedundancyOptimizer(model"):
		r.numbers[ZeRO] = 1
	default:
		r.numbers[ZeRO] = 0
	}
	if _, rest, ok := strings.Cut(r.text, `init_device_mesh("cuda", (`); ok {
		mesh, _, _ := strings.Cut(rest, ")")
		if _, shard, two := strings.Cut(mesh, ", "); two {
			number(Shard)(r, &keyfile.Entry{Key: "init_device_mesh", Value: shard})
		}
	}
	if has("offload_policy=CPUOffloadPolicy()") {
		r.texts[Offload] = "optimizer+params"
	}
	switch {
	case has("checkpoint_wrapper(layer)"):
		r.texts[Recompute] = "full"
	case has("checkpoint(attention_core"):
		r.texts[Recompute] = "selective"
	}
	switch {
	case has("torch.bfloat16"):
		r.texts[Precision] = "bf16"
	case has("torch.float16"):
		r.texts[Precision] = "fp16"
	default:
		r.texts[Precision] = "fp32"
	}
}
