package analytic

import (
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// stack holds documented properties of a training stack that determine time and are not in a plan: its kernels
// and overlaps. constants has the size of each effect, fitted over all stacks that have it.
type stack struct {
	match     string // substring of the lower-case framework name
	launch    launchKind
	tp        overlap // overlap of tensor parallel traffic
	gradients bool    // gradient reduction overlaps the backward pass
	deepSpeed bool    // ZeRO-3 is DeepSpeed's implementation
	fused     bool    // fused norms, dropout, activations
	gradBytes float64 // bytes per reduced gradient in 16-bit training
	unfused   bool    // attention materializes its scores
	torch     bool    // attention is PyTorch's implementation
	halfAgain bool    // "selective" recomputes every other multiplication
	hybrid    bool    // ZeRO-3 shards inside a node and replicates across (HSDP)
	sendAhead bool    // interleaved pipelines send during compute (Megatron Core's overlap_p2p_comm)
	sequence  bool    // TP implies sequence parallelism, even if the plan has none
}

type overlap int

const (
	overlapNone  overlap = iota // compute waits for the traffic
	overlapAsync                // on another stream, if dependencies allow
	overlapFused                // in pieces, inside the multiplications (Transformer Engine's userbuffers)
)

// stacks is searched in order. The last entry, today's Megatron Core, is for other names and for none. No run
// of LLM Foundry (eager FSDP that reduces in 16 bits, FlashAttention's own kernels), Nanotron (eager, gradients
// in fp32, TP with reduce-scatters), Colossal-AI (eager) and the JAX stacks (one compiled program per step) was
// measured: their properties come from their documents.
var stacks = []stack{
	{match: "hugging", launch: launchEager, deepSpeed: true, gradBytes: 2, unfused: true},
	{match: "deepspeed", launch: launchLean, deepSpeed: true, gradBytes: 2, unfused: true},
	{match: "bridge", launch: launchGraph, tp: overlapFused, gradients: true, fused: true, gradBytes: 2, sendAhead: true, sequence: true},
	{match: "nemo", launch: launchGraph, tp: overlapFused, gradients: true, fused: true, gradBytes: 2, sendAhead: true, sequence: true},
	{match: "megatron", launch: launchLean, gradBytes: 2, unfused: true},
	{match: "eager", launch: launchEager, gradients: true, gradBytes: 4, torch: true, halfAgain: true},
	{match: "torchtitan", launch: launchCompiled, tp: overlapAsync, gradients: true, fused: true, gradBytes: 4, torch: true, halfAgain: true, sequence: true},
	{match: "fms", launch: launchCompiled, gradients: true, fused: true, gradBytes: 2, torch: true, halfAgain: true, hybrid: true},
	{match: "fsdp", launch: launchCompiled, gradients: true, fused: true, gradBytes: 2, torch: true, halfAgain: true},
	{match: "foundry", launch: launchEager, gradients: true, gradBytes: 2},
	{match: "nanotron", launch: launchEager, gradients: true, gradBytes: 4, sequence: true},
	{match: "colossal", launch: launchEager, gradients: true, gradBytes: 2},
	{match: "maxtext", launch: launchGraph, tp: overlapAsync, gradients: true, fused: true, gradBytes: 4},
	{match: "levanter", launch: launchGraph, tp: overlapAsync, gradients: true, fused: true, gradBytes: 4},
	{match: "litgpt", launch: launchEager, gradients: true, gradBytes: 2, torch: true},
	{match: "internevo", launch: launchLean, gradients: true, gradBytes: 2},
	{match: spec.FrameworkWorker, launch: launchEager, gradients: true, gradBytes: 4, torch: true},
	{match: "", launch: launchCompiled, tp: overlapAsync, gradients: true, fused: true, gradBytes: 2, sendAhead: true},
}

// Frameworks returns the training stacks with their own properties. A framework matches a stack if its name, in
// lower case, contains the stack's name.
func Frameworks() []string {
	var out []string
	for i := range stacks {
		if stacks[i].match != "" {
			out = append(out, stacks[i].match)
		}
	}
	return out
}

func stackOf(framework string) *stack {
	f := strings.ToLower(framework)
	for i := range stacks {
		if strings.Contains(f, stacks[i].match) {
			return &stacks[i]
		}
	}
	return &stacks[len(stacks)-1]
}

// passes returns the number of memory passes of the stack's kernels relative to eager ones.
func (m *machine) passes() float64 {
	if m.stack.fused {
		return m.k.fusedPasses
	}
	return 1
}

// tpExposed returns the share of tensor parallel traffic on the critical path.
func (m *machine) tpExposed() float64 {
	switch m.stack.tp {
	case overlapFused:
		return m.k.tpOverlap
	case overlapAsync:
		return m.k.tpAsync
	}
	return 1
}

// sendExposed returns the share of stage-to-stage transfers on the critical path.
func (m *machine) sendExposed(virtualStages int) float64 {
	if m.stack.sendAhead && virtualStages > 1 {
		return m.k.p2pOverlap
	}
	return m.k.p2pShare
}

// gradHidden returns the share of the last backward pass that gradient traffic can overlap.
func (m *machine) gradHidden() float64 {
	if m.stack.gradients {
		return m.k.dpHidden
	}
	return 0
}

// zero3Hidden returns the share of all compute that ZeRO-3 traffic can overlap.
func (m *machine) zero3Hidden() float64 {
	switch {
	case m.stack.deepSpeed:
		return m.k.zero3Hidden
	case m.stack.gradients:
		return m.k.fsdpHidden
	}
	return 0
}

// zero3Traffic returns the ratio of ZeRO-3 traffic to the ideal.
func (m *machine) zero3Traffic() float64 {
	if m.stack.deepSpeed {
		return m.k.zero3Traffic
	}
	return 1
}
