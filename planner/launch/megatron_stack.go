package launch

import (
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// megatronSettings are the arguments for parts of the training stack. Conditions are those that
// megatron/training/arguments.py and megatron/core/transformer/transformer_config.py check.
//
//   - Transformer Engine selects the attention kernel, cuDNN's from Hopper on, unless --attention-backend says otherwise.
//     Its FlashAttention lacks latent attention.
//   - The loss is Megatron's own on logits that are split over tp, unless it is fused; "te" is one kernel.
//   - Weight gradients in 16 bits are reduced in 16 bits. Under bf16 they are 32 bits unless --grad-reduce-in-bf16 is
//     given, under fp16 16 bits.
//   - The distributed optimizer takes Adam only; the formats of its moments come with Transformer Engine's optimizer.
//   - Dispatchers of experts and fused routing: megatron/core/transformer/moe/README.md, 0.12 (DeepEP), 0.14 (fused
//     router, overlap with another micro-batch) and 0.15 (HybridEP, for devices with a fast link between nodes).
//   - Fine-grained offloading is of the inputs of named modules, which dense MLPs have none of, and came after 0.15.
var megatronSettings = []setting{
	{part: "attention", value: stack.Unfused, text: "--attention-backend unfused"},
	{part: "attention", value: stack.Flash, text: "--attention-backend flash", when: notLatent},
	{part: "attention", value: stack.Flash3, text: "--attention-backend flash", when: notLatent, note: "attention=flash-3: Transformer Engine selects it where the package of FlashAttention 3 is installed"},
	{part: "launch", value: stack.Eager, text: "--no-bias-gelu-fusion --no-bias-swiglu-fusion --no-bias-dropout-fusion --no-rope-fusion"},
	{part: "loss", value: stack.Parallel},
	{part: "loss", value: stack.Fused, text: "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"},
	{part: "weights", value: stack.FP8, text: "--fp8-param-gather"},
	{part: "weights", value: stack.FP8Once, text: "--fp8-param-gather", note: "the prediction has no transposed copies of weights: Megatron-LM keeps them unless disable_parameter_transpose_cache is set in its TransformerConfig, which has no flag"},
	{part: "gradients", value: stack.FP32, text: "--accumulate-allreduce-grads-in-fp32", when: inFP16},
	{part: "gradients", value: stack.FP32},
	{part: "gradients", value: stack.Half, when: inFP16},
	{part: "gradients", value: stack.Half, text: "--grad-reduce-in-bf16 --main-grads-dtype bf16", when: precisionAware},
	{part: "gradients", value: stack.Half, text: "--grad-reduce-in-bf16"},
	{part: "reduce", when: func(_ *spec.Config, p *stack.Parts) bool { return p.Reduce == p.Gradients }},
	{part: "overlap", value: stack.Backward, text: "--overlap-grad-reduce --overlap-param-gather", when: sharded},
	{part: "overlap", value: stack.Backward, text: "--overlap-grad-reduce"},
	{part: "overlap", value: stack.None, when: func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.ZeRO < 2 }},
	{part: "optimizer", value: stack.AdamBF16, text: "--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16", when: distributedOptimizer},
	{part: "optimizer", value: stack.Adam8, text: "--use-precision-aware-optimizer --exp-avg-dtype fp8 --exp-avg-sq-dtype fp8", when: distributedOptimizer},
	{part: "optimizer", value: stack.SGD, text: "--optimizer sgd --sgd-momentum 0", when: func(c *spec.Config, _ *stack.Parts) bool {
		return c.Plan.ZeRO == 0 && c.Plan.Offload == spec.OffloadNone
	}},
	{part: "zero", value: stack.FSDP, when: func(c *spec.Config, _ *stack.Parts) bool { return c.Plan.ZeRO > 1 }},
	{part: "tp", value: stack.Fused, text: "--tp-comm-overlap", when: sequenceParallel},
	{part: "sequence", value: stack.Always, text: "--sequence-parallel"},
	{part: "cp", value: stack.A2A, text: "--cp-comm-type a2a", when: func(c *spec.Config, _ *stack.Parts) bool { return c.Model.KV()%(c.Plan.TP*c.Plan.CP) == 0 }},
	{part: "ep", value: stack.Async, text: "--moe-shared-expert-overlap", when: func(c *spec.Config, p *stack.Parts) bool {
		return p.Dispatch == stack.AllToAll && c.Model.SharedExperts > 0
	}},
	{part: "ep", value: stack.Backward, text: "--overlap-moe-expert-parallel-comm", when: func(c *spec.Config, _ *stack.Parts) bool {
		return half(c) && c.Plan.Recompute != spec.RecomputeFull && (c.Plan.PP == 1 || c.Plan.VirtualStages > 1) && c.Model.MTPLayers < 2
	}},
	{part: "dispatch", value: stack.AllToAll, text: "--moe-token-dispatcher-type alltoall"},
	{part: "dispatch", value: stack.PerNode, text: "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep --moe-router-dtype fp32",
		when: func(c *spec.Config, p *stack.Parts) bool { return onNVIDIA(c, p) && c.Accelerator.ScaleUpDomain() > 0 }, note: deepEP},
	{part: "dispatch", value: stack.PerNode, text: "--moe-token-dispatcher-type flex --moe-enable-deepep --moe-router-dtype fp32", when: onNVIDIA, note: deepEP},
	{part: "dispatch", value: stack.PerNode, text: "--moe-token-dispatcher-type alltoall",
		note: "the prediction sends a token once to each node (dispatch=per-node), which DeepEP does on NVIDIA's devices: the file sends it to each expert"},
	{part: "routing", value: stack.Plain},
	{part: "routing", value: stack.Fused, text: "--moe-permute-fusion --moe-router-fusion"},
	{part: "sends", value: stack.After, text: "--no-overlap-p2p-communication"},
	{part: "recompute", when: func(_ *spec.Config, p *stack.Parts) bool {
		return p.Recompute != stack.Operators && p.Recompute != stack.Blocks
	}},
	{part: "activations", value: stack.Experts, text: "--fine-grained-activation-offloading --offload-modules expert_fc1 moe_act", when: offloadsModules, note: offloadsFrom},
	{part: "activations", value: stack.Offloaded, text: "--fine-grained-activation-offloading --offload-modules attn_norm core_attn attn_proj mlp_norm expert_fc1 moe_act",
		when: offloadsModules, note: offloadsFrom},
}

const offloadsFrom = "--fine-grained-activation-offloading is an argument of Megatron-LM core 0.16 and later"

const deepEP = "tokens are sent by the package DeepEP (github.com/deepseek-ai/DeepEP): where it is not installed, change the file to --moe-token-dispatcher-type alltoall and predict with --stack dispatch=all-to-all"

func onNVIDIA(c *spec.Config, _ *stack.Parts) bool {
	return c.Accelerator.Vendor == "NVIDIA" || c.Accelerator.Vendor == ""
}

func notLatent(c *spec.Config, _ *stack.Parts) bool { return c.Model.KVRank == 0 }
func inFP16(c *spec.Config, _ *stack.Parts) bool    { return c.Plan.Precision == spec.FP16 }
func sharded(c *spec.Config, _ *stack.Parts) bool   { return c.Plan.ZeRO > 0 }

// distributedOptimizer reports whether the distributed optimizer steps on the devices.
func distributedOptimizer(c *spec.Config, _ *stack.Parts) bool {
	return c.Plan.ZeRO == 1 && c.Plan.Offload == spec.OffloadNone
}

// precisionAware reports whether the optimizer is the one that takes gradients in several formats.
func precisionAware(c *spec.Config, p *stack.Parts) bool {
	return c.Plan.Offload == spec.OffloadOptimizer || distributedOptimizer(c, p) && (p.Optimizer == stack.AdamBF16 || p.Optimizer == stack.Adam8)
}

// offloadsModules reports whether what is offloaded are inputs of modules: of experts, and not of whole layers.
func offloadsModules(c *spec.Config, _ *stack.Parts) bool {
	return c.Model.Experts > 0 && c.Plan.Recompute != spec.RecomputeFull
}

// megatronStack writes the arguments of the training stack, one option a line.
func megatronStack(f *Framework, c *spec.Config) [][]string {
	settings, _ := f.follow(c)
	var out [][]string
	for _, word := range strings.Fields(strings.Join(written(settings, ""), " ")) {
		if strings.HasPrefix(word, "--") {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], word)
	}
	return out
}
