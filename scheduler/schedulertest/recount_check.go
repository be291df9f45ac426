package schedulertest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Check compares the result of the run with the recount. It returns the first invalid
// event or difference.
func (r *Recount) Check(result *sim.Result) error {
	r.settle()
	if holding := slices.ContainsFunc(r.order, func(l *life) bool { return l.phase == "holding" }); holding {
		if r.Horizon == 0 {
			r.fail("the run ends while jobs hold devices")
		}
		r.at = r.Horizon
	}
	if len(result.Jobs) != len(r.Jobs) {
		r.fail("%d records of %d jobs", len(result.Jobs), len(r.Jobs))
	}
	recorded := map[spec.JobID]bool{}
	for i := range result.Jobs {
		rec := &result.Jobs[i]
		if recorded[rec.Job.ID] {
			r.fail("job %s has two records", rec.Job.ID)
		}
		recorded[rec.Job.ID] = true
		if err := r.record(rec); err != nil {
			r.fail("job %s: %w", rec.Job.ID, err)
		}
	}
	for i := range r.Jobs {
		if !recorded[r.Jobs[i].ID] {
			r.fail("job %s has no record", r.Jobs[i].ID)
		}
	}
	if got, want := steps(result.Usage), steps(r.usage); !slices.Equal(got, want) {
		r.fail("usage %v, recounted %v", got, want)
	}
	return r.err
}

// steps returns the changes of a step function.
func steps(usage []sim.Usage) []sim.Usage {
	var out []sim.Usage
	last := sim.Usage{}
	for _, u := range usage {
		if u.Held == last.Held && u.Waiting == last.Waiting {
			continue
		}
		out, last = append(out, u), u
	}
	return out
}

// record compares the record of a job with its history.
func (r *Recount) record(rec *sim.JobRecord) error {
	l := r.seen[rec.Job.ID]
	if l == nil {
		l = &life{job: &rec.Job}
	}
	if l.phase == "holding" {
		r.release(l, sim.Event{Kind: sim.Submitted})
	}
	ends := 0
	for _, is := range []bool{rec.Finished, rec.Rejected != "", rec.Unfinished != ""} {
		if is {
			ends++
		}
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(b)) }
	switch {
	case ends != 1:
		return fmt.Errorf("finished is %v, rejected %q, unfinished %q: want one of them", rec.Finished, rec.Rejected, rec.Unfinished)
	case rec.Finished != (l.phase == "completed") || (rec.Rejected != "") != (l.phase == "rejected"):
		return fmt.Errorf("was last %q, the record says finished %v, rejected %q", l.phase, rec.Finished, rec.Rejected)
	case rec.Start != l.start || rec.End != l.end:
		return fmt.Errorf("runs from %v to %v, recounted %v to %v", rec.Start, rec.End, l.start, l.end)
	case rec.Restarts != l.moved+l.stopped || rec.Preemptions != l.stopped || rec.Failures != l.failures:
		return fmt.Errorf("%d restarts, %d preemptions, %d failures; recounted %d, %d, %d",
			rec.Restarts, rec.Preemptions, rec.Failures, l.moved+l.stopped, l.stopped, l.failures)
	case rec.Evictions != l.evicted || rec.Reclaims > l.evicted+l.failures:
		return fmt.Errorf("%d evictions, recounted %d; %d of them and of %d failures by spot capacity", rec.Evictions, l.evicted, rec.Reclaims, l.failures)
	case !near(rec.Attained, l.attained):
		return fmt.Errorf("%g device-s, recounted %g", rec.Attained, l.attained)
	case !near(rec.LostSteps, l.lost) || !near(rec.LostSec, l.lostSec):
		return fmt.Errorf("%g steps and %g device-s lost, recounted %g and %g", rec.LostSteps, rec.LostSec, l.lost, l.lostSec)
	case rec.Finished && !near(l.done, r.work(l.job)):
		return errors.New("finished before its work is done")
	}
	return nil
}

// quotas checks the jobs in the system.
func (r *Recount) quotas() error {
	if r.Quotas == nil {
		return nil
	}
	var admitted []*spec.Job
	for _, l := range r.order {
		if l.phase == "waiting" || l.phase == "holding" {
			admitted = append(admitted, l.job)
		}
	}
	return r.Quotas(admitted)
}
