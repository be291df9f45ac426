package recording

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Truth is a truth in which the speed of each job is that of the recording. What policies
// know of a job, its request and the estimates of its speed, stays as it was.
type Truth struct {
	sim.Truth
	factors map[spec.JobID]float64 // on the speed of the inner truth
	// Relative are the speeds of the jobs that reported their progress, relative to those of the
	// inner truth on the same devices and plans, ascending.
	Relative []float64
}

// StepsPerSec implements sim.Truth.
func (t Truth) StepsPerSec(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	rate, err := t.Truth.StepsPerSec(ctx, j, g, group)
	if f, ok := t.factors[j.ID]; ok {
		rate *= f
	}
	return rate, err
}

// In returns t with another inner truth, of the same speeds.
func (t Truth) In(inner sim.Truth) Truth {
	t.Truth = inner
	return t
}

// Requests returns the jobs as submitted, in the order of r.Jobs.
func (r *Recording) Requests() []spec.Job {
	out := make([]spec.Job, len(r.Jobs))
	for i := range r.Jobs {
		out[i] = r.Jobs[i].Job
	}
	return out
}

// Calibrate returns the truth at which jobs, those of Requests, take as long as they did: by its own
// factor on the speeds of base, each job does its work in exactly its
// recorded runs. base knows how speeds differ between devices and plans. A job that has not
// ended by itself goes on at the speed that its progress shows, else at that of base. Under a base of
// durations, a job without a duration gets the one that it turned out to have.
func (r *Recording) Calibrate(ctx context.Context, base sim.Truth, jobs []spec.Job) (Truth, error) {
	t := Truth{Truth: base, factors: map[spec.JobID]float64{}}
	_, durations := base.(sim.Durations)
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if durations && jobs[i].Duration == 0 {
			jobs[i].Duration = max(j.trained(r.To), time.Second)
			if j.Cancelled >= 0 { // it had not ended by then
				jobs[i].Duration = max(r.To, time.Second)
			}
		}
		speed := 0.0 // as its progress shows, 0 = unknown
		if j.Trained > 0 && j.trained(j.Seen) > 0 {
			done, err := r.work(ctx, base, &jobs[i], j, j.Seen)
			if err != nil {
				return t, err
			}
			speed = j.Trained / done
			t.Relative = append(t.Relative, speed)
		}
		if !j.Ended || j.Cancelled >= 0 {
			if speed > 0 {
				t.factors[j.ID] = round(speed)
			}
			continue
		}
		work, err := base.Steps(ctx, &jobs[i])
		if err != nil {
			return t, fmt.Errorf("recording: job %s: %w", j.ID, err)
		}
		done, err := r.work(ctx, base, &jobs[i], j, r.To)
		if err != nil {
			return t, err
		}
		f := round(work / done)
		if !(f > 0) || math.IsInf(f, 0) {
			return t, fmt.Errorf("recording: job %s: %g of %g steps in its runs at the speeds of the truth", j.ID, done, work)
		}
		t.factors[j.ID] = f
	}
	slices.Sort(t.Relative)
	return t, nil
}

// round returns 1 for what is 1 to nine digits, as times are recorded to a nanosecond: with a truth
// that is right, policies break ties as they did.
func round(factor float64) float64 {
	if math.Abs(factor-1) < 1e-9 {
		return 1
	}
	return factor
}

// work returns the steps that a job does in its runs up to a time at the speeds of base. A job
// that never trained did a second's.
func (r *Recording) work(ctx context.Context, base sim.Truth, request *spec.Job, j *Job, by time.Duration) (steps float64, err error) {
	rate := 0.0
	for k := range j.Runs {
		run := &j.Runs[k]
		group := &r.Cluster.Groups[r.Cluster.GroupOf(run.Grant.Slots[0].Node)]
		if rate, err = base.StepsPerSec(ctx, request, run.Grant, group); err != nil {
			return 0, fmt.Errorf("recording: job %s ran with %s on %s of %s: %w", j.ID, run.Grant.Plan, spec.Count(run.Grant.Devices(), "device"), group.Accelerator.Name, err)
		}
		steps += rate * run.trained(by).Seconds()
	}
	if steps == 0 {
		steps = rate
	}
	return steps, nil
}

// Result returns the run as it was, of the jobs that Calibrate took.
func (r *Recording) Result(jobs []spec.Job) *sim.Result {
	name := r.Policies[0]
	if n := len(r.Policies); n > 1 {
		name = fmt.Sprintf("%d policies", n)
	}
	out := &sim.Result{Policy: name + " [live]", Devices: r.Cluster.Devices()}
	change := map[time.Duration]sim.Usage{} // differences
	add := func(at time.Duration, held, waiting int) {
		u := change[at]
		change[at] = sim.Usage{Held: u.Held + held, Waiting: u.Waiting + waiting}
	}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		rec := sim.JobRecord{
			Job: jobs[i], Finished: j.Ended, Scored: j.Counts(), Restarts: j.Restarts, Preemptions: j.Preemptions, Failures: j.Failures,
		}
		switch {
		case j.Cancelled >= 0:
			rec.Finished, rec.Cancelled, rec.Unfinished = false, true, fmt.Sprintf("cancelled after %v", (j.Cancelled-j.Submit).Round(time.Second))
		case !j.Ended:
			rec.Unfinished = "had not ended when the recording did"
		}
		add(j.Submit, 0, 1)
		for k := range j.Runs {
			run := &j.Runs[k]
			devices := run.Grant.Devices()
			rec.Attained += float64(devices) * (run.End - run.Start).Seconds()
			add(run.Start, devices, -1)
			add(run.End, -devices, 1)
			if k == 0 {
				rec.Start = run.Start
			}
			rec.End = run.End
		}
		if j.Cancelled >= 0 {
			rec.End = j.Cancelled
		}
		if j.Ended {
			add(rec.End, 0, -1)
		}
		out.Jobs = append(out.Jobs, rec)
	}
	var now sim.Usage
	for at, u := range change {
		out.Usage = append(out.Usage, sim.Usage{At: at, Held: u.Held, Waiting: u.Waiting})
	}
	slices.SortFunc(out.Usage, func(a, b sim.Usage) int { return cmp.Compare(a.At, b.At) })
	for i := range out.Usage {
		u := &out.Usage[i]
		now.Held, now.Waiting = now.Held+u.Held, now.Waiting+u.Waiting
		u.Held, u.Waiting = now.Held, now.Waiting
	}
	return out
}

// Cancellations returns when jobs were cancelled.
func (r *Recording) Cancellations() map[spec.JobID]time.Duration {
	out := map[spec.JobID]time.Duration{}
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Cancelled >= 0 {
			out[j.ID] = j.Cancelled
		}
	}
	return out
}

// Notes say what a replay leaves out or assumes.
func (r *Recording) Notes() (out []string) {
	open, early, cancelled := 0, 0, 0
	for i := range r.Jobs {
		switch j := &r.Jobs[i]; {
		case j.Cancelled >= 0:
			cancelled++
		case j.Early:
			early++
		case !j.Ended:
			open++
		}
	}
	note := func(n int, format string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, spec.Count(n, "job")))
		}
	}
	note(open, "%s had not ended when the recording did: replayed, but not counted")
	note(early, "%s had run before the recording began: replayed with the rest of the work, but not counted")
	note(cancelled, "%s cancelled: replayed until then, but not counted")
	note(len(r.LeftOut), "%s without a run by pacer: left out")
	if r.Torn > 0 {
		out = append(out, fmt.Sprintf("%s torn and left out", spec.Count(r.Torn, "line")))
	}
	if r.Away >= time.Second {
		out = append(out, fmt.Sprintf("pacer was away for %s between %s: the replayed policy is not", r.Away.Round(time.Second), spec.Count(r.Sessions, "session")))
	}
	if hours := r.Others / 3600; hours > 0 {
		out = append(out, fmt.Sprintf("jobs that pacer does not schedule held devices for %.4g device-hours: in the replay, too, once they are free", hours))
	}
	return out
}
