package policy

import (
	"cmp"
	"math"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// Never is a time after the end of every run.
const Never = time.Duration(math.MaxInt64)

// Settled is implemented by policies with decisions that hold until the next event or
// Decision.Wake: called before that, Decide changes nothing. The conformance suite checks
// it. Policies made by order.Preemptive are Settled. A policy that wraps one, works in
// periods, or improves its schedule at every call is not.
type Settled interface{ Settled() }

// MinWake is the minimal time between two decisions without an event.
const MinWake = time.Second

// MaxWait bounds the time that After adds. It exceeds the horizon of any run.
const MaxWait = 100 * 365 * 24 * time.Hour

// After returns the time sec seconds after now, rounded up to a nanosecond. It adds at most
// MaxWait.
func After(now time.Duration, sec float64) time.Duration {
	if ns := math.Ceil(sec * 1e9); ns < float64(MaxWait) {
		return now + time.Duration(ns)
	}
	return now + MaxWait
}

// ByArrival orders jobs by submission; ties go to the lower ID.
func ByArrival(a, b *scheduler.JobState) int {
	return cmp.Or(cmp.Compare(a.Job.Submit, b.Job.Submit), cmp.Compare(a.Job.ID, b.Job.ID))
}
