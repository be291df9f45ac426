package analytic

import (
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// traits are the parts of a training stack in the form that step times are computed from. constants has the size
// of each effect, fitted over all stacks that have it.
type traits struct {
	launch    launchKind
	tp        overlap // overlap of tensor parallel traffic
	gradients bool    // gradient reduction overlaps the backward pass
	deepSpeed bool    // ZeRO-3 is DeepSpeed's implementation
	fused     bool    // fused norms, dropout, activations
	gradBytes float64 // bytes per reduced gradient in 16-bit training
	fp8       bool    // weights are 8-bit where multiplications are
	unfused   bool    // attention materializes its scores
	torch     bool    // attention is PyTorch's implementation
	async     bool    // attention uses Hopper's asynchronous instructions
	halfAgain bool    // "selective" recomputes every other multiplication or block
	modules   stack.Modules
	offloads  bool // activations are on the host until the backward pass
	core      bool // norms are fused with the next multiplication (Transformer Engine)
	hybrid    bool // ZeRO-3 shards inside a node and replicates across (HSDP)
	sendAhead bool // interleaved pipelines send during compute
	routing   routingKind
	perNode   bool    // tokens are sent once to each node
	exposedEP float64 // share of the all-to-alls that the stack does not overlap
	middle    bool    // stages before the last have more layers, see spec.Plan.StageLayers
	sequence  bool    // TP implies sequence parallelism, even if the plan has none
	dropout   bool    // of the inputs of adapters
	blocking  bool    // the host waits for each kernel

	exchangesHeads bool // context parallel ranks exchange heads for tokens

	update float64 // bytes that the optimizer accesses per parameter, as a share of Adam's
	muon   bool    // the optimizer makes its updates orthogonal
}

type overlap int

const (
	overlapNone  overlap = iota // compute waits for the traffic
	overlapAsync                // on another stream, if dependencies allow
	overlapFused                // in pieces, inside the multiplications (Transformer Engine's userbuffers)
)

func traitsOf(s *stack.Stack) traits {
	p := &s.Parts
	t := traits{
		gradients: p.Overlap == stack.Backward, deepSpeed: p.ZeRO == stack.DeepSpeed,
		gradBytes: 2, unfused: p.Attention == stack.Unfused, torch: p.Attention == stack.Torch, fp8: p.Weights == stack.FP8 || p.Weights == stack.FP8Once, async: p.Attention == stack.Flash3 || p.Attention == stack.CuDNN, halfAgain: p.Recompute == stack.Operators || p.Recompute == stack.Blocks,
		modules: p.Modules(), offloads: p.Activations != stack.Kept, core: s.OnCore(),
		hybrid: p.ZeRO == stack.HSDP, sendAhead: p.Sends == stack.Ahead, middle: p.Stages == stack.Middle, sequence: p.Sequence == stack.Always, dropout: p.Adapters == stack.Dropout, blocking: p.Launch == stack.Blocking,
		exchangesHeads: p.CP == stack.A2A,
	}
	t.update, t.muon = updateBytes(p)/updateBytes(&stack.Parts{Optimizer: stack.Adam}), p.Optimizer == stack.Muon
	switch p.Launch {
	case stack.Compiled:
		t.launch = launchCompiled
	case stack.Fused, stack.Blocking:
		t.launch = launchLean
	case stack.Graphs:
		t.launch = launchGraph
	}
	switch p.TP {
	case stack.Async:
		t.tp = overlapAsync
	case stack.Fused:
		t.tp = overlapFused
	}
	switch p.Routing {
	case stack.Fused:
		t.routing = routingFused
	case stack.Graphs:
		t.routing = routingGraph
	}
	t.perNode = p.Dispatch == stack.PerNode
	switch p.EP {
	case stack.Async:
		t.exposedEP = 1. / 2
	case stack.Backward:
		t.exposedEP = behindBackward
	default:
		t.exposedEP = 1
	}
	t.fused = t.launch == launchCompiled || t.launch == launchGraph
	if p.Reduce == stack.FP32 {
		t.gradBytes = 4
	}
	return t
}

// passes returns the number of memory passes of the stack's kernels relative to eager ones: fused ones never have more.
func (m *machine) passes() float64 {
	if m.stack.fused {
		return min(m.k.fusedPasses, 1)
	}
	return 1
}

// tpExposed returns the share of tensor parallel traffic on the critical path. What the backward pass sends after the
// gradient of a layer's input, one of four transfers, runs beside the gradient of its weights (Transformer Engine's
// tp_comm_bulk_wgrad, Megatron Core's asynchronous all-reduce): frozen weights have none, so nothing hides it.
func (m *machine) tpExposed(frozen bool) float64 {
	switch {
	case m.stack.tp == overlapFused && frozen:
		return (3*m.k.tpOverlap + 1) / 4
	case m.stack.tp == overlapFused:
		return m.k.tpOverlap
	case m.stack.tp == overlapAsync && !frozen:
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

// behindBackward is the exposed share of all-to-alls that overlap with the backward pass of another micro-batch.
const behindBackward = 1. / 4

// updateBytes returns the bytes that an optimizer accesses per parameter in mixed precision: it reads and writes fp32 masters
// and its moments, reads fp32 gradients and writes 16-bit weights. Adafactor reads the gradients once more, for the means of
// their rows and columns.
func updateBytes(p *stack.Parts) float64 {
	bytes := 2*4 + 2*p.MomentBytes() + 4 + 2
	if p.Optimizer == stack.Adafactor {
		bytes += 4
	}
	return bytes
}
