package planner

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// broken is a rule of proposed plans that a plan breaks, beyond those of
// spec.Plan.Check: rules that depend on the machines, or keep apart plans that
// are the same thing under two names. The zero value is none. A search asks for
// millions of them, so that what they mean is put in words only when somebody
// reads it, see words.
type broken uint8

const (
	nothingBroken broken = iota
	tpOverNodes
	cpWithoutAttention
	cpOfShortSamples
	cpUneven
	splitOpaque
	spWithoutTP
	spUneven
	zeroWithPipeline
	paramsWithoutZeRO3
	zeroAlone
	offloadWithPipeline
	offloadWithoutZeRO
)

// words says what a rule asks for and what p has. seq is the tokens of a sample.
func (b broken) words(g *generator, seq int, p *spec.Plan) string {
	switch b {
	case tpOverNodes:
		return fmt.Sprintf("tp=%d does not divide the devices of every node (%s)", p.TP, g.c.Shape.Devices)
	case cpWithoutAttention:
		return fmt.Sprintf("cp=%d needs a model with attention", p.CP)
	case cpOfShortSamples:
		return fmt.Sprintf("cp=%d is considered from %d tokens per sample, not at %d", p.CP, g.e.LongSeq, seq)
	case cpUneven:
		return fmt.Sprintf("2 x cp=%d does not divide %d tokens", p.CP, seq)
	case splitOpaque:
		return fmt.Sprintf("tp=%d, pp=%d need a model with layers and heads", p.TP, p.PP)
	case spWithoutTP:
		return "sp=1 needs tp > 1"
	case spUneven:
		return fmt.Sprintf("sp=1 needs tp x cp=%d to divide %d tokens", p.TP*p.CP, seq)
	case zeroWithPipeline:
		return fmt.Sprintf("zero=%d with pp=%d", p.ZeRO, p.PP)
	case paramsWithoutZeRO3:
		return fmt.Sprintf("offload=params needs zero=3, not %d", p.ZeRO)
	case zeroAlone:
		return fmt.Sprintf("zero=%d needs dp x cp > 1", p.ZeRO)
	case offloadWithPipeline:
		return fmt.Sprintf("offload=%s needs pp=1, not %d", p.Offload, p.PP)
	case offloadWithoutZeRO:
		return "offload=optimizer needs zero >= 1"
	}
	return ""
}

// tpInNode keeps tensor parallel groups inside a node: TP must divide the
// devices of every node.
func (g *generator) tpInNode(p *spec.Plan) broken {
	if !g.e.TPAcrossNodes && g.node%p.TP != 0 {
		return tpOverNodes
	}
	return nothingBroken
}

// cpWorth keeps context parallelism to sequences that are long and split into
// 2·CP chunks, as load-balanced ring attention needs.
func (g *generator) cpWorth(p *spec.Plan) broken {
	switch {
	case p.CP == 1:
		return nothingBroken
	case !g.r.Model.HasShape():
		return cpWithoutAttention
	case g.seq < g.e.LongSeq:
		return cpOfShortSamples
	case g.seq%(2*p.CP) != 0:
		return cpUneven
	}
	return nothingBroken
}

// opaqueSplit keeps models known only by their FLOPs to data parallelism:
// nothing says where they can be cut.
func opaqueSplit(m *spec.Model, p *spec.Plan) broken {
	if !m.HasShape() && p.TP*p.PP > 1 {
		return splitOpaque
	}
	return nothingBroken
}

// spTokens lets sequence parallelism split the tokens of a micro-batch evenly.
func spTokens(seq int, p *spec.Plan) broken {
	if p.SequenceParallel && seq%(p.TP*p.CP) != 0 {
		return spUneven
	}
	return nothingBroken
}

// redundant finds ZeRO without anything to shard over. Parameter offload is
// ZeRO-3 by definition, on one device too.
func redundant(p *spec.Plan) broken {
	if p.ZeRO > 0 && p.DP*p.CP == 1 && p.Offload != spec.OffloadParams {
		return zeroAlone
	}
	return nothingBroken
}

// offloadable keeps offload to the stages that stream gradients out, as
// ZeRO-Offload does (Ren et al. 2021), and out of pipelines.
func offloadable(p *spec.Plan) broken {
	switch {
	case p.Offload == spec.OffloadNone:
		return nothingBroken
	case p.PP > 1:
		return offloadWithPipeline
	case p.Offload == spec.OffloadOptimizer && p.ZeRO == 0 && p.DP*p.CP > 1:
		return offloadWithoutZeRO
	}
	return nothingBroken
}

// legalDegrees returns the first rule about degrees p breaks.
func (g *generator) legalDegrees(p *spec.Plan) broken {
	return first(g.tpInNode(p), g.cpWorth(p), opaqueSplit(&g.r.Model, p))
}

// legalModes returns the first rule about modes p breaks, given legal degrees:
// those of this file and those of spec.Plan.Check that modes can break.
func (g *generator) legalModes(p *spec.Plan) broken {
	switch {
	case p.SequenceParallel && p.TP == 1:
		return spWithoutTP
	case p.ZeRO >= 2 && p.PP > 1:
		return zeroWithPipeline
	case p.Offload == spec.OffloadParams && p.ZeRO != 3:
		return paramsWithoutZeRO3
	}
	return first(spTokens(g.seq, p), redundant(p), offloadable(p))
}

func first(rules ...broken) broken {
	for _, b := range rules {
		if b != nothingBroken {
			return b
		}
	}
	return nothingBroken
}

// Redundant returns why p, normal, is another plan under a second name, or "".
func Redundant(p *spec.Plan) string { return redundant(p).words(nil, 0, p) }

// CannotOffload returns why no training stack has the offload p, normal, asks
// for, or "".
func CannotOffload(p *spec.Plan) string { return offloadable(p).words(nil, 0, p) }

// CannotSplit returns why m cannot be split as p, normal, says, beyond what
// spec.Plan.Check reports, or "". seq is the tokens of a sample. It is all that
// is asked of a plan somebody names: whether it is worth proposing is not.
func CannotSplit(m *spec.Model, seq int, p *spec.Plan) string {
	return first(opaqueSplit(m, p), spTokens(seq, p)).words(nil, seq, p)
}
