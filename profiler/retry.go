package profiler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// EnvExternal is why the outcome of a point was caused from outside and not by its configuration: another process killed
// the worker, or the scheduler preempted it. Runners set it.
const EnvExternal = "external"

// maxTries is the number of measurements of a point with an outcome that Retryable reports.
const maxTries = 2

// Retryable returns why a point of a campaign is measured once more at the end of the budget, "" if it is not: its failure
// was caused from outside, it ran out of memory while other processes used its devices, or the runner doubts its step times. A
// row that the user quarantined is not measured again.
func Retryable(m spec.Measurement) string {
	switch {
	case m.Quarantined():
		return ""
	case m.Outcome == spec.Failed:
		return m.Env[EnvExternal]
	case m.Outcome == spec.OOM && m.Env[EnvShared] != "":
		return "out of memory, with other processes on its devices: " + m.Env[EnvShared]
	case m.Outcome == spec.OK && m.Doubt != "":
		return "in doubt: " + m.Doubt
	}
	return ""
}

// Latest returns the rows of one run that no later row of the same point replaces, in the order of rows. Only rows that
// Retryable reports are replaced.
func Latest(rows []spec.Measurement) []spec.Measurement {
	last := map[Identity]spec.Measurement{}
	for _, m := range rows {
		id := IdentityOf(m.Config)
		if have, ok := last[id]; !ok || later(m, have) {
			last[id] = m
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(m spec.Measurement) bool {
		return Retryable(m) != "" && later(last[IdentityOf(m.Config)], m)
	})
}

// later reports whether a was measured after b, in the same run.
func later(a, b spec.Measurement) bool {
	return cmp.Or(cmp.Compare(pointNumber(a), pointNumber(b)), a.At.Compare(b.At)) > 0
}

// addTry counts a row of point i that can be retried, or that ends its retries.
func (r *run) addTry(i int, m *spec.Measurement) {
	if r.simulated() {
		return // a table gives the same answer again
	}
	if r.tries[i] > 0 {
		r.retried++ // this row takes the place of the one before
	}
	if why := Retryable(*m); why != "" {
		r.tries[i]++
		r.retryWhy[i] = why
		return
	}
	delete(r.tries, i)
}

// pending reports whether point i is to be measured once more.
func (r *run) pending(i int) bool {
	_, skipped := r.skips[i]
	return r.tries[i] > 0 && r.tries[i] < maxTries && !skipped
}

// retries returns the points to be measured once more, in canonical order, and their expected cost in terms of the
// budget. They do not count as points of the budget.
func (r *run) retries(h costModel) (from []candidate, reserve [3]float64) {
	for _, k := range r.keys {
		for _, i := range k.points {
			if r.pending(i) {
				sec := r.seconds(k, i, h)
				from = append(from, candidate{keyState: k, point: i, sec: sec})
				reserve[byWallTime] += sec
				reserve[byDeviceTime] += sec * float64(r.points[i].Config.RunDevices())
			}
		}
	}
	return from, reserve
}

// nextRetry returns the first point to be measured once more for which the budget has time.
func (r *run) nextRetry(from []candidate, left [3]float64) (Step, bool) {
	left[byPoints] = 1
	for _, c := range from {
		if r.fitsBudget(c.point, c.sec, left) {
			return r.step(c, fmt.Sprintf("again, the last time it was %s", r.retryWhy[c.point])), true
		}
	}
	return Step{}, false
}
