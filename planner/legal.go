package planner

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// violation is a rule of proposed plans that a plan breaks, beyond those of
// spec.Plan.Check: rules that depend on the machines, and rules that exclude
// duplicates. The zero value is none. A search checks millions of plans, so that
// describe makes the message only when it is needed.
type violation uint8

const (
	noViolation violation = iota
	tpOverNodes
	cpWithoutAttention
	cpOfShortSamples
	cpUneven
	cpTokens
	splitShapeless
	spWithoutTP
	spUneven
	zeroWithPipeline
	paramsWithoutZeRO3
	zeroAlone
	offloadWithPipeline
	offloadWithoutZeRO
)

// describe returns what the rule demands and what p has. seq is the tokens of a
// sample.
func (b violation) describe(g *generator, seq int, p *spec.Plan) string {
	switch b {
	case tpOverNodes:
		return fmt.Sprintf("tp=%d does not divide the devices of every node (%s)", p.TP, g.c.Shape.Devices)
	case cpWithoutAttention:
		return fmt.Sprintf("cp=%d needs a model with attention", p.CP)
	case cpOfShortSamples:
		return fmt.Sprintf("cp=%d is considered from %d tokens per sample, not at %d", p.CP, g.e.LongSeq, seq)
	case cpUneven:
		return fmt.Sprintf("2 x cp=%d does not divide %d tokens", p.CP, seq)
	case cpTokens:
		return fmt.Sprintf("cp=%d does not divide %d tokens", p.CP, seq)
	case splitShapeless:
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

// tpInNode keeps tensor parallel groups inside a node, or nodes that a scale-up
// link joins: TP must divide the devices of each.
func (g *generator) tpInNode(p *spec.Plan) violation {
	if !g.e.TPAcrossNodes && g.node%p.TP != 0 {
		return tpOverNodes
	}
	return noViolation
}

// cpUseful restricts context parallelism to long sequences that split into 2·CP
// chunks, as load-balanced ring attention needs.
func (g *generator) cpUseful(p *spec.Plan) violation {
	switch {
	case p.CP == 1:
		return noViolation
	case !g.r.Model.HasShape():
		return cpWithoutAttention
	case g.seq < g.e.LongSeq:
		return cpOfShortSamples
	case g.seq%(2*p.CP) != 0:
		return cpUneven
	}
	return noViolation
}

// shapelessSplit restricts models known only by their FLOPs to data parallelism.
func shapelessSplit(m *spec.Model, p *spec.Plan) violation {
	if !m.HasShape() && p.TP*p.PP > 1 {
		return splitShapeless
	}
	return noViolation
}

// spTokens demands that sequence parallelism splits the tokens of a micro-batch
// evenly.
func spTokens(seq int, p *spec.Plan) violation {
	if p.SequenceParallel && seq%(p.TP*p.CP) != 0 {
		return spUneven
	}
	return noViolation
}

// redundant finds ZeRO on one data parallel rank. Parameter offload is ZeRO-3 by
// definition, on one device too.
func redundant(p *spec.Plan) violation {
	if p.ZeRO > 0 && p.DP*p.CP == 1 && p.Offload != spec.OffloadParams {
		return zeroAlone
	}
	return noViolation
}

// offloadable restricts offload to ZeRO stages that stream gradients out, as
// ZeRO-Offload does (Ren et al. 2021), and excludes it from pipelines.
func offloadable(p *spec.Plan) violation {
	switch {
	case p.Offload == spec.OffloadNone:
		return noViolation
	case p.PP > 1:
		return offloadWithPipeline
	case p.Offload == spec.OffloadOptimizer && p.ZeRO == 0 && p.DP*p.CP > 1:
		return offloadWithoutZeRO
	}
	return noViolation
}

// legalDegrees returns the first rule about degrees that p breaks.
func (g *generator) legalDegrees(p *spec.Plan) violation {
	return first(g.tpInNode(p), g.cpUseful(p), shapelessSplit(&g.r.Model, p))
}

// legalModes returns the first rule about modes that p breaks, given legal
// degrees: the rules of this file and those of spec.Plan.Check about modes.
func (g *generator) legalModes(p *spec.Plan) violation {
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

func first(rules ...violation) violation {
	for _, b := range rules {
		if b != noViolation {
			return b
		}
	}
	return noViolation
}

// Redundant returns why the normal plan p duplicates another plan, or "".
func Redundant(p *spec.Plan) string { return redundant(p).describe(nil, 0, p) }

// CannotOffload returns why no training stack has the offload of the normal plan
// p, or "".
func CannotOffload(p *spec.Plan) string { return offloadable(p).describe(nil, 0, p) }

// CannotSplit returns why m cannot be split by the normal plan p, beyond what
// spec.Plan.Check reports, or "". seq is the tokens of a sample. A plan given by
// name must pass only this; proposed plans must pass the other rules too.
func CannotSplit(m *spec.Model, seq int, p *spec.Plan) string {
	return cannotSplit(m, seq, p).describe(nil, seq, p)
}

func cannotSplit(m *spec.Model, seq int, p *spec.Plan) violation {
	if b := shapelessSplit(m, p); b != noViolation {
		return b
	}
	if p.CP > 1 && seq%p.CP != 0 {
		return cpTokens
	}
	return spTokens(seq, p)
}
