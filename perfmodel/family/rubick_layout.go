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

// rubickSeen is a set of what a plan can do, to tell what no fitted row did.
type rubickSeen uint16

var rubickFeatures = []string{"offload", "recomputation", "ZeRO", "tensor parallelism", "pipeline parallelism",
	"context parallelism", "expert parallelism", "interleaved stages", "sequence parallelism",
	"gradient accumulation", "several nodes", "more than twice the devices of any"}

// rubickFar marks configurations far larger than all fitted ones.
const rubickFar = rubickSeen(1 << 11)

func newRubickSeen(p spec.Plan, nodes int) rubickSeen {
	var s rubickSeen
	for i, has := range [...]bool{p.Offload != spec.OffloadNone, p.Recompute != spec.RecomputeNone, p.ZeRO > 0, p.TP > 1,
		p.PP > 1, p.CP > 1, p.EP > 1, p.VirtualStages > 1, p.SequenceParallel, p.AccumSteps > 1, nodes > 1} {
		if has {
			s |= 1 << i
		}
	}
	return s
}

// names lists the features of s.
func (s rubickSeen) names() []string {
	var out []string
	for ; s != 0; s &= s - 1 {
		out = append(out, rubickFeatures[bits.TrailingZeros16(uint16(s))])
	}
	return out
}
