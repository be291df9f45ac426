package order

import (
	"context"
	"iter"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// Ranking is the order in which Preemptive runs jobs. Key alone is enough for an order that
// changes with events only.
type Ranking struct {
	// Key orders the jobs: the lowest runs first. So it is not a weight: a doubled priority
	// is half the key. Ties break by arrival; NaN is last.
	Key func(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (float64, error)
	// Steady promises that the Key of a job does not change while the job waits and does
	// not rise while it holds devices. The order is then kept between decisions instead
	// of computed for each. Such an order changes at events only, so Wake has to be nil.
	// The conformance suite checks the promise, see policy.Deps.Audit.
	Steady bool
	// Wake returns the next time at which the order may change without an event, or
	// policy.Never. nil = never. It receives all jobs, unordered, after this decision: see
	// Entry.Grant and Entry.WaitsSince. It is called while at least one job waits. The
	// conformance suite checks that nothing changes earlier, see policy.Settled.
	Wake func(s *scheduler.Snapshot, jobs iter.Seq[*Entry]) time.Duration
	// Quantum is how long a job makes progress before it may be preempted. With 0 jobs may
	// preempt each other forever if keys rise as jobs run.
	Quantum time.Duration
}

// Entry is a job in a Ranking.
type Entry struct {
	Job   *scheduler.JobState // before this decision: a job preempted by it still has a Grant here
	Key   float64             // at this decision, before it
	Grant *scheduler.Grant    // after this decision, nil = none: the job waits

	urgent bool          // runs before all jobs that are not urgent
	ready  time.Duration // when it begins to make progress; only with a Grant

	// Set by the queue:
	waitQueue *waitQueue       // nil = it runs
	held      *scheduler.Grant // its grant when it was added
	since     time.Duration    // JobState.Since when it was added
	decision  uint64           // the decision that computed Key
	bound     float64          // upper bound of the present key
}

// WaitsSince returns the time at which the wait of e began, for a job with a nil Grant: now
// if this decision preempts it.
func (e *Entry) WaitsSince(s *scheduler.Snapshot) time.Duration {
	if e.Job.Grant != nil {
		return s.Now
	}
	return e.Job.Since
}

// compare is negative if e has priority over o: urgent jobs first, then the lower key,
// then arrival.
func (e *Entry) compare(o *Entry) int {
	switch {
	case e.urgent != o.urgent && e.urgent:
		return -1
	case e.urgent != o.urgent:
		return 1
	case e.Key < o.Key:
		return -1
	case e.Key > o.Key:
		return 1
	}
	return e.Job.Order - o.Job.Order
}

// runsBehind reports whether a has lower priority than b by the upper bounds of their keys.
func runsBehind(a, b *Entry) bool {
	if a.urgent == b.urgent && a.bound != b.bound {
		return a.bound > b.bound
	}
	return a.compare(b) > 0
}
