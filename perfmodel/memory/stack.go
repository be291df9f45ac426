package memory

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// traits are the parts of a training stack in the form that memory is counted from. Fitted values are in
// Constants.
type traits struct {
	// Gradient bytes per parameter in 16-bit training, kept between micro-batches.
	gradFP16, gradBF16 float64
	// Optimizer bytes per parameter of the shard in 16-bit and in fp32 training. Those in fp32 include what the
	// optimizer step allocates at once; for fp16 see flattened.
	optHalf, optFP32 float64
	// Bytes per logit at the peak of the loss; logitTP if the loss is computed on logits split over TP.
	logit, logitTP float64
	// Elements in a gradient bucket that is flattened into a copy before it is reduced, and in a bucket in
	// which sharded weights are gathered. 0 = the buckets of PyTorch or Megatron, see bucketBytes.
	bucket float64
	// Communicators per kind of parallelism: of data and tensor parallelism, and of a pipeline.
	communicators, stageCommunicators float64
	// Bytes per element of the temporary copies of a parameter's gradient on its way to the accumulator.
	gradCopyFP16, gradCopyBF16 float64
	// ZeRO-3 keeps only fp32 shards of the weights and reduces in fp32 (PyTorch's FSDP).
	fsdp bool
	// Weights are fp32, with 16-bit copies as long as the graph holds them (autocast). An optimizer on the host
	// has its own copy.
	autocast bool
	// Under fp8, layers have 8-bit matrices and no 16-bit ones; fp8Once: the transpose of one is made on use.
	fp8, fp8Once bool
	// The score matrix is materialized because there is no fused attention kernel: always, or only in fp32,
	// where FlashAttention (Dao et al. 2022) does not work and only PyTorch has another kernel.
	unfused, unfusedFP32 bool
	// What "selective" saves: the results of every other matrix multiplication, of attention and of
	// reduce-scatter; or every other block. Other stacks save all but what modules say.
	perOperator, perBlock bool
	modules               stack.Modules
	// Activations are moved to the host until the backward pass: all, or only those of routed experts.
	offloads, onlyExperts bool
	// With sequence parallelism, the inputs of split matrices are kept in gathered form and not gathered again
	// in the backward pass.
	keepsGathered bool
	// A pipeline stage keeps its output, and not only its input, until the backward pass of the micro-batch.
	keepsOutputs bool
	// Stages before the last have more layers, see spec.Plan.StageLayers.
	middle bool
	// Tensor parallelism implies sequence parallelism, even if the plan has none.
	alwaysSequence bool
	// Megatron Core and what is built on it: gradients are summed in one buffer, inside the multiplications, and
	// reduced in place. Transformer Engine gives autograd an empty tensor in place of each weight gradient, one
	// for all weights of a shape, which it keeps (get_dummy_wgrad in transformer_engine/pytorch/module/base.py).
	core bool
	// The inner activations of experts are multiplied by the router's probabilities, not their outputs: Megatron Core
	// from 0.12 on (megatron/core/transformer/moe/experts.py).
	innerProbabilities bool
	// Ranks of context parallelism exchange heads around the attention core, which keeps its own output next to that
	// of the exchange (AttnFuncWithCPAndQKVOA2A in transformer_engine/pytorch/attention).
	exchangesHeads bool
	// The embedding is padded, see vocabMultiple.
	padsVocab bool
	// The 16-bit logits are freed before the loss has its fp32 copies, which do not fit into their block: the
	// allocator keeps it.
	keepsLogits bool
	// ZeRO-3 shards inside a domain of devices, see spec.Plan.ShardInside.
	hybrid bool
	// ZeRO-3 keeps embedding and head gathered between forward and backward pass: they belong to FSDP's root.
	keepsRoot bool
	// Gradients are freed after each optimizer step (zero_grad of torch.optim, by default since PyTorch 2.0), unless the
	// buckets of a reduction hold them.
	freesGradients bool
	prints         stack.Memory
}

// deepSpeedBucket is the default of reduce_bucket_size and allgather_bucket_size, in elements:
// deepspeed/runtime/zero/config.py.
const deepSpeedBucket = 5e8

// traitsOf returns the traits of s. Bytes per parameter and logit:
//
//   - The optimizer has fp32 masters and the state that its name says, see stack.Kinds. In fp32 training there are no
//     masters.
//   - DeepSpeed with fp16 (deepspeed/runtime/zero/stage_1_and_2.py) flattens the shard's gradients in the optimizer
//     step in fp16 and again in fp32: 12 + 2 + 4 bytes; without ZeRO only in fp32 (runtime/fp16/fused_optimizer.py).
//     With bf16 it has the micro-batch's gradients in bf16 and an unsharded fp32 accumulator, to which it adds each
//     through an fp32 copy. In fp32 training it clones the shard and flattens its gradients too. It makes process
//     groups in addition to Megatron's (runtime/pipe/topology.py). A stage of its pipeline has communicators with each
//     of two neighbours, for tied embeddings and over all model parallel ranks.
//   - PyTorch's loss holds three fp32 values per logit in the backward pass: log-softmax, incoming and outgoing
//     gradient; split over TP four, including an exponential (torch/distributed/tensor/parallel/loss.py). Megatron's
//     holds the 16-bit logits, an fp32 copy and their exponentials (megatron/core/tensor_parallel/cross_entropy.py).
//     A fused one overwrites the 16-bit logits with their gradient (transformer_engine/common/triton/cross_entropy.py).
//     A compiled one has 16-bit logits and their 16-bit gradient, and no fp32 copy, unless
//     they are split over TP. A chunked one holds the logits of
//     a sixteenth of the tokens.
func traitsOf(s *stack.Stack) traits {
	p := &s.Parts
	opt := p.MomentBytes()
	t := traits{
		gradFP16: 4, gradBF16: 4, optHalf: 4 + opt, optFP32: opt, communicators: 1, stageCommunicators: 1,
		fsdp: p.ZeRO != stack.DeepSpeed, autocast: p.Weights == stack.Autocast,
		fp8: p.Weights == stack.FP8 || p.Weights == stack.FP8Once, fp8Once: p.Weights == stack.FP8Once,
		unfused: p.Attention == stack.Unfused, unfusedFP32: p.Attention != stack.Torch,
		perOperator: p.Recompute == stack.Operators, perBlock: p.Recompute == stack.Blocks,
		modules: p.Modules(), offloads: p.Activations != stack.Kept, onlyExperts: p.Activations == stack.Experts,
		keepsGathered: p.Gathered == stack.Kept, keepsOutputs: p.Outputs == stack.Kept, middle: p.Stages == stack.Middle, alwaysSequence: p.Sequence == stack.Always,
		core: s.OnCore(), innerProbabilities: s.OnCore() && s.Date >= "2025-05",
		exchangesHeads: p.CP == stack.A2A,
		padsVocab:      s.OnCore() || p.Loss == stack.Parallel && (s.Name == "Megatron-LM" || s.Name == "Megatron-DeepSpeed"),
		keepsLogits:    p.Loss == stack.Plain, hybrid: p.ZeRO == stack.HSDP, keepsRoot: p.ZeRO == stack.FSDP || p.ZeRO == stack.HSDP,
		freesGradients: (p.Weights == stack.Autocast || p.ZeRO == stack.FSDP || p.ZeRO == stack.HSDP) && s.Date >= "2023-03",
		prints:         s.Reports,
	}
	if p.Gradients == stack.Half {
		t.gradFP16, t.gradBF16 = 2, 2
	}
	switch p.Loss {
	case stack.Plain:
		t.logit, t.logitTP = 12, 16
	case stack.Parallel:
		t.logit, t.logitTP = 10, 10
	case stack.Fused:
		t.logit, t.logitTP = 2, 2
	case stack.Compiled:
		t.logit, t.logitTP = 4, 16
	case stack.Chunked:
		t.logit, t.logitTP = 12./16, 16./16
	}
	if p.ZeRO == stack.DeepSpeed {
		t.gradFP16, t.gradBF16, t.optFP32 = 2, 6, t.optFP32+8
		t.bucket, t.gradCopyFP16, t.gradCopyBF16, t.communicators, t.stageCommunicators = deepSpeedBucket, 2, 4, 2, 4
	}
	return t
}

// beforeFused reports whether an architecture is older than Ampere, the first with fused attention kernels.
func beforeFused(arch string) bool {
	switch arch {
	case "Kepler", "Maxwell", "Pascal", "Volta":
		return true
	}
	return false
}

// perParameter returns the bytes of a parameter's weight and gradient, of its optimizer state in the shard, and
// of the temporary copies of its gradient.
func (s *traits) perParameter(p *spec.Plan) (weight, grad, opt, gradCopy float64) {
	switch {
	case !halfPrecision(p.Precision):
		return 4, 4, s.optFP32, 2 * s.gradCopyFP16
	case p.ZeRO == 3 && s.fsdp: // fp32 shards are the master weights
		return 4, 4, s.optHalf - 4, 0
	case s.autocast:
		return 6, 4, s.optHalf - 4, 0
	case p.Precision == spec.FP16:
		return 2, s.gradFP16, s.optHalf + s.flattened(p), s.gradCopyFP16
	}
	return 2, s.gradBF16, s.optHalf, s.gradCopyBF16
}

// flattened returns the bytes per parameter of the shard's gradients that DeepSpeed's optimizer step flattens in fp16
// training: in fp16 and in fp32, only in fp32 without ZeRO, and none at stage 3, where it steps through parts of the
// shard.
func (s *traits) flattened(p *spec.Plan) float64 {
	switch {
	case s.fsdp || p.ZeRO == 3:
		return 0
	case p.ZeRO == 0:
		return 4
	}
	return 6
}

// halfPrecision reports whether weights are 16-bit with an fp32 master copy. An unnamed precision counts as
// mixed.
func halfPrecision(p spec.Precision) bool { return p != spec.FP32 && p != spec.TF32 }
