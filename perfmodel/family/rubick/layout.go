package rubick

import (
	"math/bits"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// rankLayout is the placement of a plan's ranks on nodes, as in Megatron-LM (Narayanan et al., SC 2021):
// consecutive ranks form tensor-parallel groups, groups form pipeline stages, stages follow each other, and
// nodes are filled in order.
type rankLayout struct {
	shape       spec.Shape
	nodes       int
	most, least int  // largest and smallest number of devices of a node
	uneven      bool // nodes have different numbers of devices, at least one of them odd
}

// newLayout places p on s, or on full nodes of assumedPerNode devices if s is empty.
func newLayout(s spec.Shape, p spec.Plan) rankLayout {
	if s.Devices == "" {
		s = spec.Packed(p.Devices(), assumedPerNode)
	}
	g := rankLayout{shape: s, nodes: s.Nodes(), most: s.Most(), least: s.Least()}
	if g.most != g.least {
		for _, n := range s.PerNode() {
			g.uneven = g.uneven || n%2 == 1
		}
	}
	return g
}

// stageInNode reports whether all replicas of a stage are on one node.
func (g rankLayout) stageInNode(p spec.Plan) bool {
	stage := p.TP * p.CP * p.DP
	return g.nodes == 1 || p.PP > 1 && stage <= g.least && g.least%stage == 0
}

// straddling returns the share of stages with a tensor-parallel group on more than one node.
func (g rankLayout) straddling(p spec.Plan) float64 {
	if g.nodes == 1 || g.most == g.least && g.most%p.TP == 0 {
		return 0
	}
	stage, rank, last, cut := p.TP*p.CP*p.DP, 0, -1, 0
	for _, n := range g.shape.PerNode() {
		if rank%p.TP != 0 && rank/stage != last { // a node boundary inside a group
			last = rank / stage
			cut++
		}
		rank += n
	}
	return min(float64(cut)/float64(p.PP), 1)
}

// featureSet is a set of properties of a configuration, to find those that no fitted row has: features of its
// plan, its number format, and sizes far outside those of the rows (see sizeRange).
type featureSet uint32

var featureNames = []string{"offload", "offloaded parameters", "recomputation", "ZeRO", "ZeRO-3", "tensor parallelism",
	"pipeline parallelism", "context parallelism", "expert parallelism", "interleaved stages", "sequence parallelism",
	"gradient accumulation", "several nodes",
	"fp32", "tf32", "16-bit precision", "fp8", "fp4",
	// The following are sizes outside of the rows'.
	"more than twice the devices", "less than half the devices", "more than twice the nodes",
	"more than twice the micro-batch", "less than half the micro-batch",
	"more than twice the tokens per sample", "less than half the tokens per sample"}

// firstSize is the index of the first size in featureNames.
const firstSize = 18

func featuresOf(p spec.Plan, nodes int) featureSet {
	var s featureSet
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

// size holds the sizes of a configuration.
type size struct{ devices, nodes, microBatch, seq int }

// sizeRange is the range of sizes of fitted rows.
type sizeRange struct{ least, most size }

// widen extends the range by a row; the first row sets both ends.
func (r *sizeRange) widen(s size, first bool) {
	if first {
		r.least, r.most = s, s
		return
	}
	r.least = size{min(r.least.devices, s.devices), min(r.least.nodes, s.nodes), min(r.least.microBatch, s.microBatch), min(r.least.seq, s.seq)}
	r.most = size{max(r.most.devices, s.devices), max(r.most.nodes, s.nodes), max(r.most.microBatch, s.microBatch), max(r.most.seq, s.seq)}
}

// beyond returns the sizes of s that are more than a factor of two outside the range. Fewer nodes do not count
// as extrapolation: they only have less traffic.
func (r *sizeRange) beyond(s size) featureSet {
	var out featureSet
	for i, far := range [...]bool{s.devices > 2*r.most.devices, 2*s.devices < r.least.devices, s.nodes > 2*r.most.nodes,
		s.microBatch > 2*r.most.microBatch, 2*s.microBatch < r.least.microBatch,
		s.seq > 2*r.most.seq, 2*s.seq < r.least.seq} {
		if far {
			out |= 1 << (firstSize + i)
		}
	}
	return out
}

// shownRows summarizes the features and sizes of fitted rows.
type shownRows struct {
	rows int
	seen featureSet // features of any row
	span sizeRange  // range of their sizes
}

// add includes a row.
func (s *shownRows) add(t *configTerms) {
	s.seen |= t.seen
	s.span.widen(t.size, s.rows == 0)
	s.rows++
}

// lacks returns the features of a configuration that no row has, and its sizes far from theirs. Without rows it
// returns all features and the largest possible number of sizes.
func (s *shownRows) lacks(t *configTerms) featureSet {
	if s.rows == 0 {
		const devices, nodes, microBatch, seq = 0, 2, 3, 5 // bits of sizeRange.beyond
		return t.seen | (1<<devices|1<<nodes|1<<microBatch|1<<seq)<<firstSize
	}
	return t.seen&^s.seen | s.span.beyond(t.size)
}

// unseenHalf widens the 90 % interval for every feature that no fitted row has and every size far from theirs:
// by a half width of 25 % in log time each, added in squares. It is a convention and not calibrated, since
// fitted rows do not determine the error of the formula far from them.
const unseenHalf = 0.25

// widening returns the square of the half width that s adds to ln T.
func (s featureSet) widening() float64 {
	return unseenHalf * unseenHalf * float64(bits.OnesCount32(uint32(s)))
}

// unseen returns a text for every feature in s, which no fitted row has.
func (s featureSet) unseen() []string {
	var out []string
	for ; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(uint32(s))
		if i < firstSize {
			out = append(out, featureNames[i]+" is not in any fitted row")
		} else {
			out = append(out, featureNames[i]+" of any fitted row")
		}
	}
	return out
}
