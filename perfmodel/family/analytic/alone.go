package analytic

import "github.com/pacer-ml/pacer/perfmodel/spec"

// aloneParts is parts for one rank of a stage that runs without the others. It has the rank's own work, and neither
// traffic, nor a bubble, nor waiting for other stages:
//
//	T = m·(l·(compute + recomputation + launch) + head) + optimizer + offload + accumulation + fixed
//
//	m     micro-batches per replica
//	l     layers of the stage, see spec.Plan.StageLayers
//	head  vocabulary head, on the last stage
//
// parts may change p, as parts does.
func (pr *Prepared) aloneParts(p *spec.Plan) Parts {
	pr.applyStack(p)
	if !pr.work.shape {
		out := pr.flopsParts(p)
		out.DP = 0
		return out
	}
	var c pass
	pr.passOf(p, &c)
	l := &c.layer
	// Models with layers of several kinds count them as layers of the mean kind.
	micro, held := float64(p.AccumSteps), float64(p.StageLayers(int(pr.work.layers), pr.alone-1, pr.machine.stack.middle))
	compute, recompute, launch := pr.layerSec(l, p)

	var out Parts
	out.Compute = micro * held * compute
	if pr.alone == p.PP {
		out.Compute += micro * c.head
	}
	out.Recompute, out.Launch = micro*held*recompute, micro*held*launch
	own := pr.owned(p)
	pr.updateSec(p, &own, &out)
	if pr.machine.stack.offloads {
		out.Offload += micro * held * pr.activationSec(p, l)
	}
	out.Compute += pr.accumulateSec(p, &own)
	out.Fixed = pr.machine.k.fixedSec
	return out
}
