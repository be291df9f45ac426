package planner

import (
	"cmp"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// The rules below say what a proposed plan must obey beyond spec.Plan.Check:
// those depend on the machines, or keep apart plans that are the same thing
// under two names. Each returns the reason it is broken, or "".

// tpInNode keeps tensor parallel groups inside a node: TP must divide the
// devices of every node.
func (g *generator) tpInNode(p *spec.Plan) string {
	if !g.e.TPAcrossNodes && g.node%p.TP != 0 {
		return fmt.Sprintf("tp=%d does not divide the devices of every node (%s)", p.TP, g.c.Shape.Devices)
	}
	return ""
}

// cpWorth keeps context parallelism to sequences that are long and split into
// 2·CP chunks, as load-balanced ring attention needs.
func (g *generator) cpWorth(p *spec.Plan) string {
	if p.CP == 1 {
		return ""
	}
	seq := g.c.Seq()
	switch {
	case !g.r.Model.HasShape():
		return fmt.Sprintf("cp=%d needs a model with attention", p.CP)
	case seq < g.e.LongSeq:
		return fmt.Sprintf("cp=%d is considered from %d tokens per sample, not at %d", p.CP, g.e.LongSeq, seq)
	case seq%(2*p.CP) != 0:
		return fmt.Sprintf("2 x cp=%d does not divide %d tokens", p.CP, seq)
	}
	return ""
}

// opaqueSplit keeps models known only by their FLOPs to data parallelism:
// nothing says where they can be cut.
func opaqueSplit(m *spec.Model, p *spec.Plan) string {
	if !m.HasShape() && p.TP*p.PP > 1 {
		return fmt.Sprintf("tp=%d, pp=%d need a model with layers and heads", p.TP, p.PP)
	}
	return ""
}

// spTokens lets sequence parallelism split the tokens of a micro-batch evenly.
func spTokens(seq int, p *spec.Plan) string {
	if p.SequenceParallel && seq%(p.TP*p.CP) != 0 {
		return fmt.Sprintf("sp=1 needs tp x cp=%d to divide %d tokens", p.TP*p.CP, seq)
	}
	return ""
}

// Redundant returns why p, normal, is another plan under a second name, or "":
// ZeRO without anything to shard over. Parameter offload is ZeRO-3 by
// definition, on one device too.
func Redundant(p *spec.Plan) string {
	if p.ZeRO > 0 && p.DP*p.CP == 1 && p.Offload != spec.OffloadParams {
		return fmt.Sprintf("zero=%d needs dp x cp > 1", p.ZeRO)
	}
	return ""
}

// CannotOffload returns why no training stack has the offload p, normal, asks
// for, or "": it is for the stages that stream gradients out, as ZeRO-Offload
// does (Ren et al. 2021), and not for pipelines.
func CannotOffload(p *spec.Plan) string {
	switch {
	case p.Offload == spec.OffloadNone:
		return ""
	case p.PP > 1:
		return fmt.Sprintf("offload=%s needs pp=1, not %d", p.Offload, p.PP)
	case p.Offload == spec.OffloadOptimizer && p.ZeRO == 0 && p.DP*p.CP > 1:
		return "offload=optimizer needs zero >= 1"
	}
	return ""
}

// legal checks every rule of this file.
func (g *generator) legal(p *spec.Plan) string {
	for _, why := range [...]string{g.tpInNode(p), g.cpWorth(p), opaqueSplit(&g.r.Model, p)} {
		if why != "" {
			return why
		}
	}
	return g.legalModes(p)
}

// CannotSplit returns why m cannot be split as p, normal, says, beyond what
// spec.Plan.Check reports, or "". seq is the tokens of a sample. It is all that
// is asked of a plan somebody names: whether it is worth proposing is not.
func CannotSplit(m *spec.Model, seq int, p *spec.Plan) string {
	return cmp.Or(opaqueSplit(m, p), spTokens(seq, p))
}

// legalModes checks the rules about modes, given legal degrees: those of this
// file and those of spec.Plan.Check that modes can break.
func (g *generator) legalModes(p *spec.Plan) string {
	switch {
	case p.SequenceParallel && p.TP == 1:
		return "sp=1 needs tp > 1"
	case p.ZeRO >= 2 && p.PP > 1:
		return fmt.Sprintf("zero=%d with pp=%d", p.ZeRO, p.PP)
	case p.Offload == spec.OffloadParams && p.ZeRO != 3:
		return fmt.Sprintf("offload=params needs zero=3, not %d", p.ZeRO)
	}
	for _, why := range [...]string{spTokens(g.c.Seq(), p), Redundant(p), CannotOffload(p)} {
		if why != "" {
			return why
		}
	}
	return ""
}
