package admission

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// eviction is the search for jobs to evict so that a job fits into its quota.
type eviction struct {
	*usage
	job      *spec.Job
	queue    *queue
	resource string
	targets  []*scheduler.JobState
}

// Evict returns the jobs in the system to evict so that j, which does not fit, does; none if that is
// not allowed, or not enough.
func (a cohorts) Evict(s *scheduler.Snapshot, j *spec.Job) (jobs []*scheduler.JobState, why string) {
	if a.queues == nil {
		return nil, ""
	}
	e := &eviction{usage: a.usage(s), job: j, queue: a.queues[j.Tenant], resource: a.resource(j)}
	find := e.classic
	if a.fair {
		find = e.fairly
	}
	if !find(e.candidates(s)) {
		return nil, ""
	}
	e.minimize()
	return e.targets, fmt.Sprintf("its quota is needed by job %s of tenant %q", j.ID, j.Tenant)
}

// candidates returns the jobs that j may evict: those of other queues first, then by lower priority,
// then later arrival.
func (e *eviction) candidates(s *scheduler.Snapshot) (out []*scheduler.JobState) {
	lower := func(k *spec.Job) bool { return priority(k) < priority(e.job) }
	nominal := e.used[e.queue.tenant][e.resource]+e.job.Devices <= e.queue.nominal[e.resource]
	others := e.reclaim
	if !nominal && !e.fair {
		others = e.borrow
	}
	for _, k := range s.Jobs() {
		q := e.queues[k.Job.Tenant]
		switch {
		case q == nil || e.cohorts.resource(k.Job) != e.resource || k.Job.Devices == 0:
		case q == e.queue:
			if e.within == "lower" && lower(k.Job) {
				out = append(out, k)
			}
		case q.cohort == "" || q.cohort != e.queue.cohort || !e.borrowing(q, e.resource):
		case others == "any" || others == "lower" && lower(k.Job):
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(x, y *scheduler.JobState) int {
		return cmp.Or(cmp.Compare(e.own(x), e.own(y)), cmp.Compare(priority(x.Job), priority(y.Job)), cmp.Compare(y.Order, x.Order))
	})
	return out
}

// own returns 1 for a job of the queue itself, else 0.
func (e *eviction) own(k *scheduler.JobState) int {
	if k.Job.Tenant == e.queue.tenant {
		return 1
	}
	return 0
}

// classic is Kueue's classic preemption: it takes candidates in order until j fits, none of a queue that does not borrow
// any more. It reports whether j does, and takes none if not.
func (e *eviction) classic(candidates []*scheduler.JobState) bool {
	for _, k := range candidates {
		if e.own(k) == 0 && !e.borrowing(e.queues[k.Job.Tenant], e.resource) {
			continue
		}
		e.take(k)
		if e.fits(e.job) {
			return true
		}
	}
	e.untakeAll()
	return false
}

func (e *eviction) take(k *scheduler.JobState) {
	e.add(k.Job, -1)
	e.targets = append(e.targets, k)
}

func (e *eviction) untakeAll() {
	for _, k := range e.targets {
		e.add(k.Job, 1)
	}
	e.targets = nil
}

// fairly is Kueue's fair sharing: it takes a job of the queue with the highest share, first where the
// share of j's queue with j does not exceed that without the job (LessThanOrEqualToFinalShare), then
// where it is below that with the job (LessThanInitialShare).
func (e *eviction) fairly(candidates []*scheduler.JobState) bool {
	left := slices.Clone(candidates)
	for _, final := range []bool{true, false} {
		for len(left) > 0 {
			i := e.highest(left, final)
			if i < 0 {
				break
			}
			e.take(left[i])
			if e.fits(e.job) {
				return true
			}
			left = slices.Delete(left, i, i+1)
		}
	}
	e.untakeAll()
	return false
}

// highest returns the index of the first candidate that may be taken of the queue with the highest
// share, -1 if there is none. Jobs of the own queue come last.
func (e *eviction) highest(candidates []*scheduler.JobState, final bool) int {
	best, highest := -1, math.Inf(-1)
	with := e.share(e.queue, e.resource, e.job.Devices)
	for i, k := range candidates {
		if e.own(k) == 1 {
			if best < 0 {
				best = i
			}
			continue
		}
		q := e.queues[k.Job.Tenant]
		now := e.share(q, e.resource, 0)
		allowed := with < now
		if final {
			allowed = with <= e.share(q, e.resource, -k.Job.Devices)
		}
		if allowed && e.borrowing(q, e.resource) && now > highest {
			best, highest = i, now
		}
	}
	return best
}

// minimize puts back the targets without which j still fits, last ones first.
func (e *eviction) minimize() {
	for i := len(e.targets) - 2; i >= 0; i-- {
		k := e.targets[i]
		e.add(k.Job, 1)
		if e.fits(e.job) {
			e.targets = slices.Delete(e.targets, i, i+1)
		} else {
			e.add(k.Job, -1)
		}
	}
}
