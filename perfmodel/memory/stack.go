package memory

import (
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// stack is what a training stack decides about memory that no plan says.
type stack struct {
	// Bytes of gradient per parameter in 16-bit training, kept between
	// micro-batches.
	gradFP16, gradBF16 float64
	// Bytes of optimizer state per parameter of the shard.
	optimizer float64
	// Bytes per logit at the peak of the loss.
	logit float64
	// Weights are fp32, with 16-bit copies while the graph holds them (autocast);
	// an optimizer on the host has a copy of its own.
	autocast bool
	// The score matrix is materialized (no fused attention kernel).
	unfused bool
	// "selective" recomputes every other matrix multiplication rather than
	// the attention core.
	perOperator bool
	// Tensor parallelism comes with sequence parallelism, whatever the plan
	// says: torchtitan knows no other, NeMo's and Megatron-Bridge's recipes
	// always turn it on.
	alwaysSequence bool
}

// stackOf reads a framework name. Unknown names, and "", are taken as
// Megatron-LM, the most demanding of the common ones on gradients.
//
//   - Megatron-LM accumulates gradients in fp32: 18 bytes of state per
//     parameter in all, which is what the states in Korthikanti et al. 2022,
//     figure 1, come to. Its fused loss holds fp32 logits and a 16-bit copy.
//   - DeepSpeed: bytes per parameter set so that the memory the BLOOM training
//     chronicles print comes out (bigscience-workshop/bigscience). They are what
//     16-bit gradients with a flattened copy, an fp32 gradient of the shard at
//     the step and, for bf16, an fp32 accumulator would add up to.
//   - PyTorch's FSDP reduces into fp32 shards. The bytes per logit are set to
//     the memory pytorch/torchtitan prints; they are what logits, their fp32
//     copy, the log-softmax and most of its gradient would add up to.
//   - Pacer's worker is PyTorch with autocast; by its code, not set to any figure.
func stackOf(framework, arch string) stack {
	f := strings.ToLower(framework)
	s := stack{gradFP16: 4, gradBF16: 4, optimizer: 12, logit: 6}
	switch {
	case f == spec.FrameworkWorker:
		s.logit, s.autocast = 13, true
	case strings.Contains(f, "deepspeed"):
		s.gradFP16, s.gradBF16, s.optimizer, s.unfused = 4, 8, 16, true
	case strings.Contains(f, "torchtitan"), strings.Contains(f, "fsdp"), strings.Contains(f, "litgpt"), strings.Contains(f, "pytorch"):
		s.logit = 13
		s.perOperator = strings.Contains(f, "torchtitan")
		s.alwaysSequence = s.perOperator
	case strings.Contains(f, "nemo"), strings.Contains(f, "bridge"):
		s.alwaysSequence = true
	case strings.Contains(f, "internevo"):
		s.gradBF16 = 2
	}
	switch arch { // no fused attention before Ampere
	case "Kepler", "Maxwell", "Pascal", "Volta":
		s.unfused = true
	}
	return s
}

// halfPrecision reports whether weights are kept in 16 bits beside an fp32
// master copy. An unnamed precision is taken as mixed.
func halfPrecision(p spec.Precision) bool { return p != spec.FP32 && p != spec.TF32 }
