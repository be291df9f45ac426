package live

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// action is a write for one job.
type action struct {
	*job
	kind EventKind // Decided = the record alone
	next Record
	why  string // of a stop without a decision
	err  error

	fresh    bool // the target of the start is recorded first
	recorded bool // that was done
}

// reconcile records targets, then lets each job take one step towards its own. It reports
// whether something is to be tried again soon.
func (c *Controller) reconcile(ctx context.Context, now time.Time) (again bool) {
	for _, holds := range []bool{false, true} { // those that give devices back first
		again = c.write(ctx, c.records(holds)) || again
	}
	again = c.write(ctx, c.releases(now)) || again
	return c.write(ctx, c.nextSteps(now)) || again
}

// records returns the records to write of jobs with a target, or of those without; fresh ones are left to nextSteps.
func (c *Controller) records(holds bool) (out []*action) {
	for _, j := range c.order {
		if !j.behind() && j.dirty() && (j.want.Plan != "") == holds && !j.fresh() {
			out = append(out, &action{job: j, kind: Decided, next: j.want})
		}
	}
	return out
}

// nextSteps returns the next step of every job that has one. The target of a job that had none is recorded as part of it:
// by then what others give up is recorded, so that no two records hold the same devices.
func (c *Controller) nextSteps(now time.Time) (out []*action) {
	jobs := slices.Clone(c.order)
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.want.Generation, b.want.Generation) })
	for _, j := range jobs {
		fresh := j.fresh()
		if j.behind() || j.dirty() && !fresh {
			continue
		}
		wanted := j.want.Plan != ""
		switch phase := j.observed.Phase; {
		case phase == Held && wanted && c.take(j):
			r := j.want
			r.RunGeneration, r.RunPlan, r.RunSlots = r.Generation, r.Plan, r.Slots
			out = append(out, &action{job: j, kind: StartedJob, next: r, fresh: fresh})
		case fresh:
			out = append(out, &action{job: j, kind: Decided, next: j.want})
		case phase == Requeued, (phase == Running || phase == Released) && !(wanted && j.want.settled()):
			if now.Before(j.stopped) {
				continue
			}
			if phase == Running && !c.countRestart(now, j) {
				c.delay(j)
				continue
			}
			out = append(out, &action{job: j, kind: StoppedJob, next: j.want})
		}
	}
	return out
}

// take takes the devices of the target of a held job off those that are free now, if they are. What the job may hold itself
// is free for it.
func (c *Controller) take(j *job) bool {
	c.give(j.unsure)
	ok := c.free(j.want.Slots)
	c.hold(j.unsure)
	if ok {
		c.hold(j.want.Slots)
	}
	return ok
}

// delay reports once that the restart of a job waits.
func (c *Controller) delay(j *job) {
	if !j.delayed {
		j.delayed = true
		c.event(Event{Kind: Delayed, Job: &j.observed, Message: "its restart waits for the limit of restarts per hour"})
	}
}

// write does actions, several at a time. It reports whether one is to be tried again soon.
func (c *Controller) write(ctx context.Context, actions []*action) (again bool) {
	var wait sync.WaitGroup
	var silent atomic.Bool // a write got no answer in time: the others wait for another time, not each for its own
	next := make(chan *action)
	for range min(c.Writers, len(actions)) {
		wait.Go(func() {
			for a := range next {
				if a.err = errSilent; silent.Load() {
					continue
				}
				if a.err = c.do(ctx, a); errors.Is(a.err, context.DeadlineExceeded) {
					silent.Store(true)
				}
			}
		})
	}
	for _, a := range actions {
		next <- a
	}
	close(next)
	wait.Wait()
	for _, a := range actions {
		again = c.wrote(ctx, a) || again
	}
	return again
}

// errSilent is the error of a write that was not tried.
var errSilent = errors.New("live: the cluster does not answer")

func (c *Controller) do(ctx context.Context, a *action) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch a.kind {
	case StartedJob:
		if a.fresh {
			if err := c.Cluster.Record(ctx, &a.observed, a.want); err != nil {
				a.kind = Decided // that is all that was tried
				return err
			}
			a.recorded = true
		}
		return c.Cluster.Start(ctx, &a.observed, a.next)
	case StoppedJob:
		return c.Cluster.Stop(ctx, &a.observed)
	}
	return c.Cluster.Record(ctx, &a.observed, a.next)
}

// wrote takes the result of an action over.
func (c *Controller) wrote(ctx context.Context, a *action) (again bool) {
	if errors.Is(a.err, errSilent) {
		return true
	}
	c.stats.Writes++
	j := a.job
	if a.recorded {
		c.stats.Writes++
		j.written, j.observed.Record = j.want, j.want
	}
	switch {
	case a.err == nil:
		j.failure, j.unsure = "", nil
	case ctx.Err() != nil, errors.Is(a.err, ErrGone): // the next observation tells
		return false
	default:
		c.stats.FailedWrites++
		if a.kind == StartedJob && !errors.Is(a.err, ErrConflict) {
			j.unsure, j.unsureSince = a.next.RunSlots, j.observed.Version
		}
		if text := a.err.Error(); !errors.Is(a.err, ErrConflict) && text != j.failure {
			j.failure = text
			c.event(Event{Kind: WriteFailed, Job: &j.observed, Message: text, Warning: true})
		}
		return true
	}
	switch a.kind {
	case StartedJob:
		c.stats.Starts++
		j.observed.Phase = Released
		c.event(Event{Kind: StartedJob, Job: &j.observed, Message: a.next.RunPlan + " on " + a.next.RunSlots.String()})
	case StoppedJob:
		c.stats.Stops++
		j.ran, j.stopped = false, c.Now().Add(c.StaleAfter)
		if a.why != "" {
			j.want.Failures++
			c.event(Event{Kind: StoppedJob, Job: &j.observed, Message: a.why, Warning: true})
			return false
		}
		c.event(Event{Kind: StoppedJob, Job: &j.observed, Message: "for " + decided(&Record{}, j.want.Plan, j.want.Slots, "")})
		return false
	}
	j.want, j.written, j.observed.Record = a.next, a.next, a.next
	return false
}
