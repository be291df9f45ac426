package spectest

import (
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// DrawPlan draws an execution plan, which may be illegal.
func DrawPlan(t *rapid.T) spec.Plan {
	pow := func(label string, most int) int { return 1 << rapid.IntRange(0, most).Draw(t, label) }
	p := spec.Plan{DP: pow("dp", 4), MicroBatch: pow("mb", 2), AccumSteps: pow("ga", 4)}
	if rapid.Bool().Draw(t, "split") {
		p.TP, p.PP, p.CP, p.EP, p.VirtualStages = pow("tp", 3), pow("pp", 3), pow("cp", 2), pow("ep", 4), pow("vp", 2)
		if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
			p.PP, p.VirtualStages = rapid.IntRange(2, 7).Draw(t, "stages"), 1
		}
		p.SequenceParallel = rapid.Bool().Draw(t, "sp")
	}
	p.ZeRO = rapid.IntRange(0, 3).Draw(t, "zero")
	if p.ZeRO > 0 && rapid.Bool().Draw(t, "hsdp") {
		p.Shard = pow("shard", 4)
	}
	if rapid.IntRange(0, 3).Draw(t, "other schedule") == 0 {
		p.Schedule = rapid.SampledFrom(spec.Schedules()).Draw(t, "schedule")
	}
	p.Offload = rapid.SampledFrom([]spec.Offload{"", "", spec.OffloadOptimizer, spec.OffloadParams}).Draw(t, "offload")
	p.Recompute = rapid.SampledFrom([]spec.Recompute{"", spec.RecomputeSelective, spec.RecomputeFull}).Draw(t, "recompute")
	p.Precision = rapid.SampledFrom(spec.Precisions()).Draw(t, "precision")
	return p
}
