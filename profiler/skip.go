package profiler

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// skipBeyond rules out the points of b that ask for at least what m asked for,
// when m ran out of memory or time.
func (r *run) skipBeyond(b *belief, m spec.Measurement) {
	if m.Outcome != spec.OOM && m.Outcome != spec.Timeout || crowded(m) {
		return
	}
	for _, i := range b.points {
		c := r.points[i].Config
		if r.open(i) && asksMore(r.identity(c), r.identity(m.Config)) {
			r.skips[i] = Rejected{Config: c, Group: ForOutcome, Why: fmt.Sprintf("point %d (%s, %d tokens) ended with %s, and this asks for no less",
				pointNumber(m), m.Config.Plan, m.Config.Seq(), m.Outcome)}
		}
	}
}

// crowded reports whether somebody else's memory may be why m ran out of it:
// this says nothing of other points.
func crowded(m spec.Measurement) bool { return m.Outcome == spec.OOM && m.Env[EnvShared] != "" }

// asksMore reports whether a is b with a micro-batch, a sequence and
// accumulation steps that are as large or larger: it needs no less memory and
// no less time.
func asksMore(a, b Identity) bool {
	if a.plan.MicroBatch < b.plan.MicroBatch || a.plan.AccumSteps < b.plan.AccumSteps || a.seq < b.seq {
		return false
	}
	a.plan.MicroBatch, a.plan.AccumSteps, a.seq = b.plan.MicroBatch, b.plan.AccumSteps, b.seq
	return a == b
}
