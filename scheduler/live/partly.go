package live

import (
	"errors"
	"fmt"
	"time"
)

// partlyDoneAfter is how long a job may be partly done before an event says so: processes do not end all at once.
const partlyDoneAfter = time.Minute

// mergePartlyDone says if some processes of a job have ended for a while, and others run on.
func (c *Controller) mergePartlyDone(now time.Time, j *job) {
	o := &j.observed
	if o.Phase != Running || !o.PartlyDone {
		j.partly, j.told = time.Time{}, false
		return
	}
	if j.partly.IsZero() {
		j.partly = now
	}
	if j.told || now.Sub(j.partly) < partlyDoneAfter {
		return
	}
	j.told = true
	then := "the job goes on without a limit"
	if o.ReleaseAfter > 0 {
		then = fmt.Sprintf("the job is stopped %v after that", o.ReleaseAfter)
	}
	c.event(Event{Kind: PartlyDone, Job: o, Warning: true,
		Message: fmt.Sprintf("some processes have ended, and others run on since %v: they may wait for each other; %s", now.Sub(j.partly).Round(time.Second), then)})
}

// startsWithin is how long a job may be released before an event says that it does not start.
const startsWithin = time.Minute

// mergeReleased says if the cluster has not started a job for a while: a limit of its user, a node that others have taken, or
// a request that no node meets.
func (c *Controller) mergeReleased(now time.Time, j *job) {
	o := &j.observed
	if o.Phase != Released {
		j.released = time.Time{}
		return
	}
	if j.released.IsZero() {
		j.released = now
	}
	if now.Sub(j.released) >= startsWithin {
		err := errors.New("live: was released a minute ago or earlier, and the cluster does not start it")
		if o.Reason != "" {
			err = fmt.Errorf("%w: %s", err, o.Reason)
		}
		c.faulty(Fault{"job " + string(o.Spec.ID), err})
	}
}

// overdue reports whether a job is to be stopped, since it has been partly done for too long.
func (j *job) overdue(now time.Time) bool {
	return !j.partly.IsZero() && j.observed.ReleaseAfter > 0 && now.Sub(j.partly) >= j.observed.ReleaseAfter && !now.Before(j.stopped)
}

// releases returns the stops of jobs that have been partly done for too long, whether the policy decides about them or not. A
// cluster that can starts them again with their target.
func (c *Controller) releases(now time.Time) (out []*action) {
	for _, j := range c.jobs {
		if j.missing.IsZero() && j.overdue(now) {
			out = append(out, &action{job: j, kind: StoppedJob, next: j.want, why: fmt.Sprintf("partly done for %v", now.Sub(j.partly).Round(time.Second))})
		}
	}
	return out
}
