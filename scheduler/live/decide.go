package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// decide calls the policy on the targets and sets new ones. After an error the targets stay. It returns false if the source of
// predictions went away meanwhile: nothing is decided then.
func (c *Controller) decide(ctx context.Context, now time.Time) bool {
	c.retry = time.Time{}
	if len(c.cluster.Groups) == 0 {
		c.changed = false
		return true
	}
	if err := c.makePolicy(); err != nil {
		c.refuse(now, PolicyFailed, err)
		return true
	}
	ledger := c.book()
	s := ledger.Snapshot(c.since(now))
	s.Ended, s.Reasons = c.ended, true
	limited, cancel := context.WithTimeout(ctx, c.DecideLimit)
	defer cancel()
	d, err := c.policy.Decide(limited, s)
	if !c.away && c.Planner() != nil {
		c.away = true
		return false
	}
	c.stats.Decisions++
	if err != nil {
		if ctx.Err() == nil {
			c.refuse(now, PolicyFailed, err)
		}
		return true
	}
	changes, err := scheduler.Check(ledger, c, c.since(now), &d)
	if err == nil {
		err = c.checkReal(changes)
	}
	if err == nil {
		err = ledger.Apply(changes.All())
	}
	if err != nil {
		c.refuse(now, Refused, err)
		return true
	}
	c.stats.Made++
	c.ended, c.changed, c.wake, c.refusal, c.failures = nil, false, time.Time{}, "", 0
	if d.Wake > 0 {
		c.wake = c.epoch.Add(d.Wake)
	}
	c.setTargets(now, changes, &d)
	return true
}

func (c *Controller) makePolicy() (err error) {
	if c.policy == nil {
		c.policy, err = c.Policy(c.cluster)
	}
	return err
}

// refuse reports why there is no decision, once each reason, and plans the next attempt.
func (c *Controller) refuse(now time.Time, kind EventKind, err error) {
	if kind == Refused {
		c.stats.Refused++
	} else {
		c.stats.Failed++
	}
	c.retry, c.wake = now.Add(min(time.Second<<min(c.failures, 10), retryDecide)), time.Time{}
	c.failures++
	if text := string(kind) + err.Error(); text != c.refusal {
		c.refusal = text
		c.event(Event{Kind: kind, Object: "policy", Message: err.Error(), Warning: true})
	}
}

// book returns a ledger of the nodes, the usage and the targets of the managed jobs. Of targets
// that contradict each other the later one holds; the job of the other has none.
func (c *Controller) book() *scheduler.Ledger {
	l := c.ledger()
	grants := make([]scheduler.Change, 0, len(c.order))
	for _, j := range c.order {
		if g := j.state.Grant; g != nil {
			grants = append(grants, scheduler.Change{Job: &j.state, To: g})
			j.state.Grant = nil
		}
		l.Enter(&j.state)
	}
	if err := l.Apply(grants); err != nil {
		slices.SortStableFunc(grants, func(a, b scheduler.Change) int {
			return cmp.Compare(c.jobs[b.Job.Job.ID].want.Generation, c.jobs[a.Job.Job.ID].want.Generation)
		})
		grants = slices.DeleteFunc(grants, func(g scheduler.Change) bool {
			err := l.Apply([]scheduler.Change{g})
			if err != nil {
				g.Job.Phase = scheduler.Waiting
				if o := &c.jobs[g.Job.Job.ID].observed; o.Phase != Held { // one that waits for devices gets others: those had to stay with their job
					c.event(Event{Kind: Faulty, Job: o, Message: "target: " + err.Error(), Warning: true})
				}
			}
			return err != nil
		})
	}
	for _, g := range grants {
		g.Job.Grant = g.To
	}
	return l
}

// checkReal returns an error for a change that no engine can make.
func (c *Controller) checkReal(changes scheduler.Changes) error {
	for _, change := range changes.Starts {
		switch g := change.To; {
		case g.With != "":
			return fmt.Errorf("job %s shares its devices with job %s, which is not supported on real clusters", g.Job, g.With)
		case g.Workers()+g.Servers() > 0:
			return fmt.Errorf("job %s has tasks on CPUs, which are not supported on real clusters", g.Job)
		case c.even && g.Shape.Most() != g.Shape.Least():
			return fmt.Errorf("job %s: shape %s has not the same number of devices on every node, as this cluster needs", g.Job, g.Shape.Devices)
		}
	}
	return nil
}

// setTargets sets the targets of a checked decision. A target that equals the recorded one is
// no change, even if the policy took it away and gave it back.
func (c *Controller) setTargets(now time.Time, changes scheduler.Changes, d *scheduler.Decision) {
	c.generation++
	for _, change := range changes.All() {
		change.Job.Grant = change.To
	}
	for _, j := range c.order {
		plan, slots := "", c.slots(j.state.Grant)
		if slots != nil {
			plan = j.state.Grant.Plan.String()
		}
		why := d.Why[j.state.Job.ID]
		if plan == j.want.Plan && sameSlots(slots, j.want.Slots) {
			if why == "" && c.DryRun {
				why = "the policy gives no reason"
			}
			if plan == "" && why != "" && !j.waits {
				j.waits = true
				c.event(Event{Kind: Waiting, Job: &j.observed, Message: why})
			}
			continue
		}
		j.waits = false
		c.event(Event{Kind: Decided, Job: &j.observed, Message: decided(&j.want, plan, slots, why)})
		if c.DryRun {
			j.state.Grant = nil // made again from the record
			continue
		}
		j.setTarget(now, c.generation, plan, slots, c.since(now))
	}
	for _, w := range d.Warnings {
		c.faulty(Fault{"policy", fmt.Errorf("%s", w)})
	}
}

// decided words a change of a target.
func decided(r *Record, plan string, slots Slots, why string) string {
	text := "nothing"
	if plan != "" {
		text = plan + " on " + slots.String()
	}
	if r.Plan != "" {
		text += ", before " + r.Plan + " on " + r.Slots.String()
	}
	if why != "" {
		text += ": " + why
	}
	return text
}

// setTarget sets the target of a job, brought up to now.
func (j *job) setTarget(now time.Time, generation int64, plan string, slots Slots, at time.Duration) {
	r := &j.want
	r.Attained, r.Done = j.state.Attained, j.state.Done
	switch {
	case r.Plan == "":
		r.Waited = max(r.Waited, (at - j.state.Since).Seconds())
	case !j.void: // else it is one of Failures
		r.Restarts++
	}
	if plan != "" && r.FirstRun.IsZero() {
		r.FirstRun = now.UTC()
	}
	r.Generation, r.Plan, r.Slots, r.Since = generation, plan, slots, now.UTC()
	j.delayed, j.void = false, false
}
