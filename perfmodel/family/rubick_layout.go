package family

import (
	"math/bits"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// rubickLayout is how a plan's ranks lie on nodes: consecutive ranks form
// tensor-parallel groups, groups form pipeline stages, stages follow each
// other, as in Megatron-LM (Narayanan et al., SC 2021), and nodes are filled in
// order.
type rubickLayout struct {
	shape       spec.Shape
	nodes       int
	most, least int  // devices of a node
	uneven      bool // nodes hold different numbers of devices, one of them odd
}

// newRubickLayout lays p out on s; on full nodes of assumedPerNode devices when
// s is empty.
func newRubickLayout(s spec.Shape, p spec.Plan) rubickLayout {
	if s.Devices == "" {
		s = spec.Packed(p.Devices(), assumedPerNode)
	}
	g := rubickLayout{shape: s, nodes: s.Nodes(), most: s.Most(), least: s.Least()}
	if g.most != g.least {
		for _, n := range s.PerNode() {
			g.uneven = g.uneven || n%2 == 1
		}
	}
	return g
}

// stageInNode reports whether no replica of a stage is on another node.
func (g rubickLayout) stageInNode(p spec.Plan) bool {
	stage := p.TP * p.CP * p.DP
	return g.nodes == 1 || p.PP > 1 && stage <= g.least && g.least%stage == 0
}

// straddling returns the share of stages with a tensor-parallel group on more
// than one node.
func (g rubickLayout) straddling(p spec.Plan) float64 {
	if g.nodes == 1 || g.most == g.least && g.most%p.TP == 0 {
		return 0
	}
	stage, rank, last, cut := p.TP*p.CP*p.DP, 0, -1, 0
	for _, n := range g.shape.PerNode() {
		if rank%p.TP != 0 && rank/stage != last { // a node begins inside a group
			last = rank / stage
			cut++
		}
		rank += n
	}
	return min(float64(cut)/float64(p.PP), 1)
}

// rubickSeen is a set of what a configuration is, to tell what no fitted row
// was: features of its plan, the format of its multiplications and, relative to
// the rows (see rubickSpan), sizes far beyond theirs.
type rubickSeen uint32

var rubickFeatures = []string{"offload", "offloaded parameters", "recomputation", "ZeRO", "ZeRO-3", "tensor parallelism",
	"pipeline parallelism", "context parallelism", "expert parallelism", "interleaved stages", "sequence parallelism",
	"gradient accumulation", "several nodes",
	"fp32", "tf32", "16-bit precision", "fp8", "fp4",
	// From here on sizes beyond the rows'.
	"more than twice the devices", "less than half the devices", "more than twice the nodes",
	"more than twice the micro-batch", "less than half the micro-batch",
	"more than twice the tokens per sample", "less than half the tokens per sample"}

// rubickSizes is the index of the first size in rubickFeatures.
const rubickSizes = 18

func newRubickSeen(p spec.Plan, nodes int) rubickSeen {
	var s rubickSeen
	for i, has := range [...]bool{p.Offload != spec.OffloadNone, p.Offload == spec.OffloadParams, p.Recompute != spec.RecomputeNone,
		p.ZeRO > 0, p.ZeRO == 3, p.TP > 1, p.PP > 1, p.CP > 1, p.EP > 1, p.VirtualStages > 1, p.SequenceParallel,
		p.AccumSteps > 1, nodes > 1,
		p.Precision == spec.FP32, p.Precision == spec.TF32,
		p.Precision == "" || p.Precision == spec.FP16 || p.Precision == spec.BF16,
		p.Precision.Format() == spec.FP8, p.Precision == spec.FP4} {
		if has {
			s |= 1 << i
		}
	}
	return s
}

// rubickSize is how large a configuration is.
type rubickSize struct{ devices, nodes, microBatch, seq int }

// rubickSpan is the range of sizes of fitted rows.
type rubickSpan struct{ least, most rubickSize }

// widen takes a row in; the first one sets both ends.
func (r *rubickSpan) widen(s rubickSize, first bool) {
	if first {
		r.least, r.most = s, s
		return
	}
	r.least = rubickSize{min(r.least.devices, s.devices), min(r.least.nodes, s.nodes), min(r.least.microBatch, s.microBatch), min(r.least.seq, s.seq)}
	r.most = rubickSize{max(r.most.devices, s.devices), max(r.most.nodes, s.nodes), max(r.most.microBatch, s.microBatch), max(r.most.seq, s.seq)}
}

// beyond marks what of s is more than a factor of two outside the range. Fewer
// nodes are no extrapolation: they only lack traffic.
func (r *rubickSpan) beyond(s rubickSize) rubickSeen {
	var out rubickSeen
	for i, far := range [...]bool{s.devices > 2*r.most.devices, 2*s.devices < r.least.devices, s.nodes > 2*r.most.nodes,
		s.microBatch > 2*r.most.microBatch, 2*s.microBatch < r.least.microBatch,
		s.seq > 2*r.most.seq, 2*s.seq < r.least.seq} {
		if far {
			out |= 1 << (rubickSizes + i)
		}
	}
	return out
}

// rubickShown is what fitted rows have shown.
type rubickShown struct {
	rows int
	seen rubickSeen // features some row has
	span rubickSpan // their sizes
}

// add takes a row in.
func (s *rubickShown) add(t *rubickTerms) {
	s.seen |= t.seen
	s.span.widen(t.size, s.rows == 0)
	s.rows++
}

// lacks marks the features of a configuration that no row has and its sizes far
// from theirs; all of its features and as many sizes as can be when there is no row.
func (s *rubickShown) lacks(t *rubickTerms) rubickSeen {
	if s.rows == 0 {
		const devices, nodes, microBatch, seq = 0, 2, 3, 5 // bits of rubickSpan.beyond
		return t.seen | (1<<devices|1<<nodes|1<<microBatch|1<<seq)<<rubickSizes
	}
	return t.seen&^s.seen | s.span.beyond(t.size)
}

// rubickUnseen widens the 90 % interval for every feature no fitted row has and
// every size far from theirs: half a width of 25 % in log time each, added in
// squares. It is a convention, not calibrated: the fitted rows cannot tell how
// wrong the formula is where they are not.
const rubickUnseen = 0.25

// widening returns the square of what is added, in squares, to half an interval
// of ln T.
func (s rubickSeen) widening() float64 {
	return rubickUnseen * rubickUnseen * float64(bits.OnesCount32(uint32(s)))
}

// unseen says of every feature in s that no fitted row has it.
func (s rubickSeen) unseen() []string {
	var out []string
	for ; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(uint32(s))
		if i < rubickSizes {
			out = append(out, rubickFeatures[i]+" is in no fitted row")
		} else {
			out = append(out, rubickFeatures[i]+" of any fitted row")
		}
	}
	return out
}
