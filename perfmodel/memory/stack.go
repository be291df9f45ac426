package memory

import (
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// printed is what a training stack's own figure of peak memory counts.
type printed uint8

const (
	printsDevice    printed = iota // all of the device, as nvidia-smi shows it
	printsReserved                 // what PyTorch's allocator took: no context, no communicators
	printsAllocated                // what tensors took: no fragmentation either
)

// stack holds the facts about a training stack that decide about memory and are
// not in a plan. They are from the software's code or documents; fitted figures
// are in Constants. Which facts matter was seen on the published measurements.
type stack struct {
	name string // of the entry in Calibration.Stacks

	// Bytes of gradient per parameter in 16-bit training, kept between
	// micro-batches.
	gradFP16, gradBF16 float64
	// Bytes of optimizer state per parameter of the shard in 16-bit training,
	// with what the step allocates in one piece; the same in fp32 training.
	optFP16, optBF16, optFP32 float64
	// Bytes per logit at the peak of the loss; with the loss computed on logits
	// split over TP.
	logit, logitTP float64
	// Elements of a gradient bucket that is flattened into a copy before it is
	// reduced, and of one in which sharded weights are gathered; 0 = PyTorch's or
	// Megatron's buckets, see bucketBytes.
	bucket float64
	// Communicators per kind of parallelism.
	communicators float64
	// Bytes per element of the copies a parameter's gradient takes on its way to
	// where it is accumulated.
	gradCopyFP16, gradCopyBF16 float64
	// ZeRO-3 keeps fp32 shards as the only weights and reduces in fp32 (PyTorch's FSDP).
	fsdp bool
	// Weights are fp32, with 16-bit copies while the graph holds them (autocast);
	// an optimizer on the host has a copy of its own.
	autocast bool
	// The score matrix is materialized (no fused attention kernel), always or
	// only in fp32, for which there is none outside of PyTorch (FlashAttention,
	// Dao et al. 2022, takes 16 bits).
	unfused, unfusedFP32 bool
	// "selective" keeps what every other matrix multiplication, attention and
	// reduce-scatter give, and recomputes the rest, rather than the attention core.
	perOperator bool
	// With sequence parallelism the inputs of split matrices are kept as gathered
	// over the sequence, rather than gathered again in the backward pass.
	keepsGathered bool
	// A pipeline stage holds its output until the backward pass of the
	// micro-batch, not only its input.
	keepsOutputs bool
	// Tensor parallelism implies sequence parallelism, also where the plan has
	// none: torchtitan has no other, NeMo's and Megatron-Bridge's recipes always
	// turn it on.
	alwaysSequence bool
	prints         printed
}

// deepSpeedBucket is reduce_bucket_size and allgather_bucket_size, in elements,
// by default: deepspeed/runtime/zero/config.py.
const deepSpeedBucket = 5e8

// stacks is searched in order for what a framework's name contains, lower case;
// the last entry is for all others: Megatron-LM, the most demanding of the
// common ones on gradients.
//
//   - Megatron-LM accumulates gradients in fp32: 18 bytes of state per
//     parameter in all, which is what the states in Korthikanti et al. 2022,
//     figure 1, come to. Its loss holds the 16-bit logits, an fp32 copy and
//     their exponentials (megatron/core/tensor_parallel/cross_entropy.py). NeMo
//     and Megatron-Bridge fuse the loss. Stage outputs are freed once sent.
//     Gradients of Megatron-Bridge are counted in bf16, as the performance scripts
//     have them that its published figures are of (grad_reduce_in_fp32 = False in
//     scripts/performance/configs); its other recipes (src/megatron/bridge/recipes)
//     keep fp32, 2 bytes a parameter more.
//   - DeepSpeed with fp16 (deepspeed/runtime/zero/stage_1_and_2.py): gradients
//     stay in fp16, and at the step the shard's are flattened in fp16 and again
//     in fp32, 12 + 2 + 4 bytes; without ZeRO only in fp32
//     (runtime/fp16/fused_optimizer.py). With bf16 (runtime/bf16_optimizer.py): gradients
//     of the micro-batch in bf16 beside an unsharded fp32 accumulator, into which
//     each is added through an fp32 copy. In fp32 training the shard is cloned
//     and its gradients flattened as well. Gradients are reduced, and weights
//     gathered, in flat copies of at most 5e8 elements. The pipeline engine keeps
//     every stage output in a buffer (runtime/pipe/engine.py) and makes process
//     groups of its own beside Megatron's (runtime/pipe/topology.py).
//   - PyTorch's FSDP shards fp32 weights and reduces in fp32. Its loss holds
//     three fp32 values per logit in the backward pass: log-softmax, incoming and
//     outgoing gradient; split over TP four, of which one is an exponential
//     (torch/distributed/tensor/parallel/loss.py). torchtitan's "selective" saves
//     every other multiplication (models/llama3/infra/parallelize.py), and it
//     prints the peak its allocator reserved. DTensor's matrix multiplications
//     keep the input they were given, gathered.
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

// stackOf returns the entry for a framework's name. It must not be changed.
func stackOf(framework string) *stack {
	f := strings.ToLower(framework)
	for i := range stacks {
		if strings.Contains(f, stacks[i].name) {
			return &stacks[i]
		}
	}
	return &stacks[len(stacks)-1]
}

// beforeFused reports whether an architecture is older than the fused attention
// kernels, which begin with Ampere.
func beforeFused(arch string) bool {
	switch arch {
	case "Kepler", "Maxwell", "Pascal", "Volta":
		return true
	}
	return false
}

// perParameter returns bytes of a parameter's weight and gradient, of its
// optimizer state in the shard, and of the copies its gradient takes.
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

// halfPrecision reports whether weights are kept in 16 bits beside an fp32
// master copy. An unnamed precision is taken as mixed.
func halfPrecision(p spec.Precision) bool { return p != spec.FP32 && p != spec.TF32 }
