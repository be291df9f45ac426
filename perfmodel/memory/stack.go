package memory

import (
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// printed says what a training stack's own figure of peak memory includes.
type printed uint8

const (
	printsDevice    printed = iota // all memory of the device in use, as nvidia-smi shows it
	printsReserved                 // memory reserved by PyTorch's allocator: no context, no communicators
	printsAllocated                // memory of tensors: no fragmentation either
)

// stack holds properties of a training stack that determine memory and are not in a plan. They come from its
// code or documents; fitted values are in Constants. The published measurements showed which properties matter.
type stack struct {
	name string // key in Calibration.Stacks

	// Gradient bytes per parameter in 16-bit training, kept between micro-batches.
	gradFP16, gradBF16 float64
	// Optimizer bytes per parameter of the shard, including what the optimizer step allocates at once: in fp16,
	// bf16 and fp32 training.
	optFP16, optBF16, optFP32 float64
	// Bytes per logit at the peak of the loss; logitTP if the loss is computed on logits split over TP.
	logit, logitTP float64
	// Elements in a gradient bucket that is flattened into a copy before it is reduced, and in a bucket in
	// which sharded weights are gathered. 0 = the buckets of PyTorch or Megatron, see bucketBytes.
	bucket float64
	// Communicators per kind of parallelism.
	communicators float64
	// Bytes per element of the temporary copies of a parameter's gradient on its way to the accumulator.
	gradCopyFP16, gradCopyBF16 float64
	// ZeRO-3 keeps only fp32 shards of the weights and reduces in fp32 (PyTorch's FSDP).
	fsdp bool
	// Weights are fp32, with 16-bit copies as long as the graph holds them (autocast). An optimizer on the host
	// has its own copy.
	autocast bool
	// The score matrix is materialized because there is no fused attention kernel: always, or only in fp32,
	// where FlashAttention (Dao et al. 2022) does not work and only PyTorch has another kernel.
	unfused, unfusedFP32 bool
	// "selective" saves the results of every other matrix multiplication, of attention and of reduce-scatter,
	// and recomputes the rest. Other stacks recompute the attention core only.
	perOperator bool
	// With sequence parallelism, the inputs of split matrices are kept in gathered form and not gathered again
	// in the backward pass.
	keepsGathered bool
	// A pipeline stage keeps its output, and not only its input, until the backward pass of the micro-batch.
	keepsOutputs bool
	// Tensor parallelism implies sequence parallelism, even if the plan has none: torchtitan has no other form,
	// and the recipes of NeMo and Megatron-Bridge always turn it on.
	alwaysSequence bool
	prints         printed
}

// deepSpeedBucket is the default of reduce_bucket_size and allgather_bucket_size, in elements:
// deepspeed/runtime/zero/config.py.
const deepSpeedBucket = 5e8

// stacks is searched in order for the first name that the framework's lower-case name contains. The last entry
// matches all frameworks: it is Megatron-LM, which needs the most memory for gradients among the common ones.
//
//   - Megatron-LM accumulates gradients in fp32: 18 bytes of state per parameter in total, the same as in
//     Korthikanti et al. 2022, figure 1. Its loss holds the 16-bit logits, an fp32 copy and their exponentials
//     (megatron/core/tensor_parallel/cross_entropy.py). NeMo and Megatron-Bridge fuse the loss. Stage outputs are
//     freed once sent. Gradients of Megatron-Bridge are counted in bf16, as in the performance scripts behind its
//     published figures (grad_reduce_in_fp32 = False in scripts/performance/configs); its other recipes
//     (src/megatron/bridge/recipes) keep fp32, 2 bytes more per parameter.
//   - DeepSpeed with fp16 (deepspeed/runtime/zero/stage_1_and_2.py) keeps gradients in fp16. The optimizer step
//     flattens those of the shard in fp16 and again in fp32: 12 + 2 + 4 bytes; without ZeRO only in fp32
//     (runtime/fp16/fused_optimizer.py). With bf16 (runtime/bf16_optimizer.py) it keeps the micro-batch's gradients
//     in bf16 and an unsharded fp32 accumulator, to which it adds each through an fp32 copy. In fp32 training it
//     clones the shard and flattens its gradients too. It reduces gradients, and gathers weights, in flat copies of
//     at most 5e8 elements. The pipeline engine keeps every stage output in a buffer (runtime/pipe/engine.py) and
//     makes process groups in addition to Megatron's (runtime/pipe/topology.py).
//   - PyTorch's FSDP shards fp32 weights and reduces in fp32. Its loss holds three fp32 values per logit in the
//     backward pass: log-softmax, incoming and outgoing gradient; split over TP four, including an exponential
//     (torch/distributed/tensor/parallel/loss.py). torchtitan's "selective" saves every other multiplication
//     (models/llama3/infra/parallelize.py), and torchtitan prints the peak that its allocator reserved. DTensor's
//     matrix multiplications keep their gathered input.
//   - Pacer's worker is PyTorch with autocast, and records allocated bytes.
var stacks = []stack{
	{communicators: 1, name: "pacer-torch", gradFP16: 4, gradBF16: 4, optFP16: 8, optBF16: 8, optFP32: 8, logit: 12, logitTP: 16, autocast: true, fsdp: true, keepsOutputs: true, prints: printsAllocated},
	{communicators: 2, name: "deepspeed", gradFP16: 2, gradBF16: 6, optFP16: 18, optBF16: 12, optFP32: 16, logit: 10, logitTP: 10,
		bucket: deepSpeedBucket, gradCopyFP16: 2, gradCopyBF16: 4, unfused: true, keepsOutputs: true},
	{communicators: 1, name: "torchtitan", gradFP16: 4, gradBF16: 4, optFP16: 12, optBF16: 12, optFP32: 8, logit: 12, logitTP: 16,
		fsdp: true, perOperator: true, keepsOutputs: true, keepsGathered: true, alwaysSequence: true, prints: printsReserved},
	{communicators: 1, name: "fsdp", gradFP16: 4, gradBF16: 4, optFP16: 12, optBF16: 12, optFP32: 8, logit: 12, logitTP: 16, fsdp: true, keepsOutputs: true, keepsGathered: true},
	{communicators: 1, name: "litgpt", gradFP16: 4, gradBF16: 4, optFP16: 12, optBF16: 12, optFP32: 8, logit: 12, logitTP: 16, fsdp: true, prints: printsAllocated},
	{communicators: 1, name: "pytorch", gradFP16: 4, gradBF16: 4, optFP16: 12, optBF16: 12, optFP32: 8, logit: 12, logitTP: 16, fsdp: true, keepsOutputs: true, keepsGathered: true},
	{communicators: 1, name: "nemo", gradFP16: 4, gradBF16: 4, optFP16: 12, optBF16: 12, optFP32: 8, logit: 6, logitTP: 6, fsdp: true, unfusedFP32: true, alwaysSequence: true},
	{communicators: 1, name: "bridge", gradFP16: 4, gradBF16: 2, optFP16: 12, optBF16: 12, optFP32: 8, logit: 6, logitTP: 6, fsdp: true, unfusedFP32: true, alwaysSequence: true},
	{communicators: 1, name: "internevo", gradFP16: 4, gradBF16: 2, optFP16: 12, optBF16: 12, optFP32: 8, logit: 10, logitTP: 10, fsdp: true, unfusedFP32: true},
	{communicators: 1, name: "", gradFP16: 4, gradBF16: 4, optFP16: 12, optBF16: 12, optFP32: 8, logit: 10, logitTP: 10, fsdp: true, unfusedFP32: true},
}

// stackOf returns the entry for a framework's name. The caller must not change it.
func stackOf(framework string) *stack {
	f := strings.ToLower(framework)
	for i := range stacks {
		if strings.Contains(f, stacks[i].name) {
			return &stacks[i]
		}
	}
	return &stacks[len(stacks)-1]
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
func (s *stack) perParameter(p *spec.Plan) (weight, grad, opt, gradCopy float64) {
	switch {
	case !halfPrecision(p.Precision):
		return 4, 4, s.optFP32, 2 * s.gradCopyFP16
	case p.ZeRO == 3 && s.fsdp: // fp32 shards are the master weights
		return 4, 4, 8, 0
	case s.autocast:
		return 6, 4, 8, 0
	case p.Precision == spec.FP16 && p.ZeRO == 0:
		return 2, s.gradFP16, min(s.optFP16, 16), s.gradCopyFP16
	case p.Precision == spec.FP16:
		return 2, s.gradFP16, s.optFP16, s.gradCopyFP16
	}
	return 2, s.gradBF16, s.optBF16, s.gradCopyBF16
}

// halfPrecision reports whether weights are 16-bit with an fp32 master copy. An unnamed precision counts as
// mixed.
func halfPrecision(p spec.Precision) bool { return p != spec.FP32 && p != spec.TF32 }
