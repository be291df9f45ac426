package planner

import (
	"cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// compare orders candidates as Ranking documents.
func (s *search) compare(a, b candidate) int {
	switch {
	case a.fits != b.fits:
		if a.fits {
			return -1
		}
		return 1
	case a.fits:
		if c := compareFitting(&a, &b); c != 0 {
			return c
		}
	default:
		if c := cmp.Or(cmp.Compare(a.bytes, b.bytes), comparePlans(&a.plan, &b.plan)); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.site, b.site)
}

// compareFitting orders by descending score, then by descending throughput at the
// request's risk, then by ascending memory, then by plan.
func compareFitting(a, b *candidate) int {
	if c := cmp.Compare(b.score, a.score); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(b.quantile, a.quantile), cmp.Compare(a.bytes, b.bytes), comparePlans(&a.plan, &b.plan), cmp.Compare(a.site, b.site))
}

// comparePlans is a total order of normal plans, simpler ones first: fewer splits,
// then fewer modes.
func comparePlans(a, b *spec.Plan) int {
	return cmp.Or(
		cmp.Compare(a.PP, b.PP), cmp.Compare(a.TP, b.TP), cmp.Compare(a.CP, b.CP), cmp.Compare(a.EP, b.EP),
		cmp.Compare(a.DP, b.DP), cmp.Compare(a.VirtualStages, b.VirtualStages),
		cmp.Compare(a.Schedule, b.Schedule), cmp.Compare(a.ZeRO, b.ZeRO), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Offload, b.Offload), cmp.Compare(a.Recompute, b.Recompute),
		compareBool(a.SequenceParallel, b.SequenceParallel),
		cmp.Compare(a.ParamServers, b.ParamServers), compareBool(a.Async, b.Async),
		cmp.Compare(a.MicroBatch, b.MicroBatch), cmp.Compare(a.AccumSteps, b.AccumSteps),
		cmp.Compare(a.Precision, b.Precision))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
