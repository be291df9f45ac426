package profiler

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// skipLarger skips the points of k that need at least as much as m, if m ran out of memory or time.
func (r *run) skipLarger(k *keyState, m spec.Measurement) {
	if m.Outcome != spec.OOM && m.Outcome != spec.Timeout || inconclusive(m) {
		return
	}
	for _, i := range k.points {
		c := r.points[i].Config
		if r.open(i) && needsAtLeast(r.identity(c), r.identity(m.Config)) {
			r.skips[i] = Rejected{Config: c, Group: ForOutcome, Why: fmt.Sprintf("point %d (%s, %d tokens) ended with %s, and this point needs at least as much",
				pointNumber(m), m.Config.Plan, m.Config.Seq(), m.Outcome)}
		}
	}
}

// inconclusive reports whether the outcome of m was caused from outside, or the user quarantined m. Such a row does not
// rule out other points.
func inconclusive(m spec.Measurement) bool {
	return m.Quarantined() || m.Outcome != spec.OK && Retryable(m) != ""
}

// needsAtLeast reports whether a equals b except for a micro-batch, sequence or accumulation at least as large.
// It then needs at least as much memory and time.
func needsAtLeast(a, b Identity) bool {
	if a.plan.MicroBatch < b.plan.MicroBatch || a.plan.AccumSteps < b.plan.AccumSteps || a.seq < b.seq {
		return false
	}
	a.plan.MicroBatch, a.plan.AccumSteps, a.seq = b.plan.MicroBatch, b.plan.AccumSteps, b.seq
	return a == b
}
