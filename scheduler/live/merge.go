package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// merge takes an observation over.
func (c *Controller) merge(ctx context.Context, now time.Time, s *State) {
	usage := c.usage
	if away := c.Planner() != nil; away != c.away {
		c.away, c.changed = away, true
		if !away {
			c.renew() // the policy may have kept predictions of another source
		}
	}
	c.mergeNodes(s)
	for _, f := range s.Faults {
		c.faulty(f)
	}
	if c.epoch.IsZero() {
		c.epoch = now
		for i := range s.Jobs {
			if at := s.Jobs[i].Submitted; !at.IsZero() && at.Before(c.epoch) {
				c.epoch = at
			}
		}
	}
	for i := range s.Jobs {
		o := &s.Jobs[i]
		if o.Phase == Ended {
			continue
		}
		if j := c.jobs[o.Spec.ID]; j != nil && j.observed.UID != o.UID { // another with its ID
			if s.olderThan(j) { // one before it
				continue
			}
			c.drop(j, s.Cancelled)
		}
		c.mergeJob(ctx, now, o)
	}
	c.dropEnded(ctx, now, s)
	c.order = c.order[:0]
	for _, j := range c.jobs {
		keeps := c.away && j.observed.Phase == Running && j.want.settled() && !c.on(j.holds(), Down)
		if j.managed && !keeps {
			c.order = append(c.order, j)
			continue
		}
		if held := j.holds(); held != nil {
			c.occupy(held, j.observed.Spec.Host)
		}
	}
	c.changed = c.changed || !slices.Equal(usage, c.usage)
	slices.SortFunc(c.order, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.state.Job.Submit, b.state.Job.Submit), cmp.Compare(a.state.Job.ID, b.state.Job.ID))
	})
	c.number()
	for _, j := range c.jobs {
		c.hold(j.holds())
	}
}

// olderThan reports whether the observation is older than what is known of a job.
func (s *State) olderThan(j *job) bool { return s.OlderThan != nil && s.OlderThan(j.observed.Version) }

// number gives every job of order its place in the order of arrival. It stays the same, unless
// a job that arrived before others is seen later than they are.
func (c *Controller) number() {
	last, anew := -1, false
	for _, j := range c.order {
		if !j.numbered {
			j.numbered, j.state.Order = true, c.numbered
			c.numbered++
		}
		anew, last = anew || j.state.Order < last, j.state.Order
	}
	if !anew {
		return
	}
	for _, j := range c.order {
		j.state.Order = c.numbered
		c.numbered++
	}
}

// mergeNodes takes the nodes over. With other nodes the policy is made anew.
func (c *Controller) mergeNodes(s *State) {
	c.even = s.Even
	mode := c.mode
	if !c.layout.has(s.Nodes) || c.policy == nil && len(s.Nodes) != len(c.names) {
		c.layout = newLayout(s.Nodes)
		c.renew()
		for _, j := range c.jobs {
			j.state.Grant = nil
		}
	} else {
		c.layout.clear()
	}
	for _, f := range c.setNodes(s.Nodes) {
		c.faulty(f)
	}
	c.changed = c.changed || !slices.Equal(mode, c.mode)
	c.checker = c.ledger()
}

// mergeJob takes a job that has not ended over.
func (c *Controller) mergeJob(ctx context.Context, now time.Time, o *Job) {
	o.Spec.Submit = max(o.Submitted.Sub(c.epoch), 0)
	j := c.jobs[o.Spec.ID]
	if j == nil {
		j = &job{}
		c.jobs[o.Spec.ID] = j
	}
	j.seen, j.missing = true, time.Time{}
	managed := j.managed
	j.observed = *o
	c.mergePartlyDone(now, j)
	c.mergeReleased(now, j)
	c.mergeRecord(now, j)
	if !j.pending && (o.Version == "" || o.Version != j.unsureSince) { // it has the start, if that took place
		j.unsure = nil
	}
	bad := o.Spec.Validate()
	if bad == nil && o.Spec.HasParamServers() {
		bad = fmt.Errorf("live: plan %s has parameter servers, which are not supported on real clusters", o.Spec.Plan)
	}
	if bad == nil && o.Phase == Running && j.want.RunPlan == "" {
		bad = errors.New("live: runs without having been started by pacer, and is left as it is")
	}
	if bad != nil {
		c.faulty(Fault{"job " + string(o.Spec.ID), bad})
	}
	draining := o.Phase == Running && j.want.settled() && c.on(j.holds(), Draining)
	j.managed = bad == nil && !o.Paused && !draining
	if j.managed != managed {
		c.changed = true
	}
	if !j.managed {
		c.leave(j)
		j.state.Grant = nil
		return
	}
	runs := o.Phase == Running && !c.on(j.holds(), Down)
	switch {
	case runs:
		j.ran = j.want.settled()
		j.void = j.void && !j.ran
	case j.ran && j.want.settled() && !j.pending: // it completes, or was stopped without a decision
		j.ran, j.left = false, true
		j.want.Attained, j.want.Done = j.state.Attained, j.state.Done
	}
	if j.left && o.Phase != Stopping {
		j.left = false
		if !runs {
			c.lost(j)
		}
	}
	if o.Phase == Held || o.Phase == Stopping {
		j.stopped = time.Time{}
	}
	c.adopt(j)
	c.setGrant(j)
	c.advance(ctx, now, j)
}

// mergeRecord compares the record of the observation with the one written last.
func (c *Controller) mergeRecord(now time.Time, j *job) {
	o := &j.observed.Record
	c.generation = max(c.generation, o.Generation)
	older := o.Generation < j.written.Generation || o.RunGeneration < j.written.RunGeneration
	switch {
	case !older:
		j.stale, j.pending = time.Time{}, false
		if o.Generation > j.want.Generation || o.Generation == j.want.Generation && o.RunGeneration > j.want.RunGeneration {
			j.want = *o
		} else if o.RunGeneration > j.want.RunGeneration { // a start that got no answer, before the present target
			j.want.RunGeneration, j.want.RunPlan, j.want.RunSlots = o.RunGeneration, o.RunPlan, o.RunSlots
		}
	case j.stale.IsZero():
		j.stale, j.pending = now, true
	case now.Sub(j.stale) >= c.StaleAfter: // others changed it: our target is written again
		j.stale, j.pending, j.written = time.Time{}, false, Record{}
	}
}

// lost counts that a job was stopped without a decision. Its target stays.
func (c *Controller) lost(j *job) {
	j.void = true
	j.want.Failures++
	c.stats.Lost++
	c.event(Event{Kind: Lost, Job: &j.observed, Message: "stopped on " + j.want.RunSlots.String() + " without a decision", Warning: true})
}

// adopt takes over the devices of a job that runs on others than those it was started on.
func (c *Controller) adopt(j *job) {
	o := &j.observed
	if o.Phase != Running || o.Slots == nil || j.pending || j.want.RunPlan == "" || sameSlots(o.Slots, j.want.RunSlots) {
		return
	}
	c.faulty(Fault{"job " + string(o.Spec.ID), fmt.Errorf("live: runs on %s, was started on %s", o.Slots, j.want.RunSlots)})
	if j.want.settled() && o.Slots.Devices() == j.want.RunSlots.Devices() {
		c.generation++
		j.want.Generation, j.want.Slots, j.want.RunSlots = c.generation, o.Slots, o.Slots
		c.changed = true
		return
	}
	j.want.RunSlots = o.Slots
}

// setGrant makes the grant of the target. Without nodes that are up there is none, and the
// policy decides anew.
func (c *Controller) setGrant(j *job) {
	if j.want.Plan != "" && (c.on(j.want.Slots, Down) || c.on(j.want.Slots, Draining)) {
		j.void = true
		j.state.Grant, c.changed = nil, c.changed || j.state.Grant != nil
		return
	}
	if g := j.state.Grant; g != nil && g.Plan.String() == j.want.Plan && sameSlots(c.slots(g), j.want.Slots) {
		return
	}
	g, err := c.grant(&j.observed.Spec, j.want.Plan, j.want.Slots)
	if err == nil && g != nil {
		err = c.checker.CheckGrant(&j.observed.Spec, g)
	}
	if err != nil {
		c.faulty(Fault{"job " + string(j.observed.Spec.ID), fmt.Errorf("target: %w", err)})
		g = nil
	}
	if g != nil || j.state.Grant != nil {
		c.changed = true
	}
	j.state.Grant = g
}

// advance brings the state of a managed job up to now.
func (c *Controller) advance(ctx context.Context, now time.Time, j *job) {
	s, r, o := &j.state, &j.want, &j.observed
	s.Job = &o.Spec
	s.Restarts, s.Failures, s.StartCost = r.Restarts, r.Failures, c.StartCost
	s.Waited, s.FirstRun = seconds(r.Waited), c.since(r.FirstRun)
	s.Attained, s.Done, s.Phase = r.Attained, r.Done, scheduler.Waiting
	s.Since = o.Spec.Submit
	if !r.Since.IsZero() {
		s.Since = c.since(r.Since)
	}
	running := o.Phase == Running && r.RunPlan != ""
	began := o.Started
	if began.IsZero() {
		began = r.Since
	}
	counts := began // from when on Attained and Done do not count yet
	if r.Since.After(counts) {
		counts = r.Since
	}
	if running {
		s.Attained += float64(r.RunSlots.Devices()) * max(now.Sub(counts), 0).Seconds()
	}
	if s.Grant != nil {
		s.Phase, s.Ready = scheduler.Starting, c.since(now)+c.StartCost
		if running && r.settled() {
			s.Ready = c.since(began) + c.StartCost
			if now.Sub(c.epoch) >= s.Ready {
				s.Phase = scheduler.Running
			}
		}
	}
	if ready := began.Add(c.StartCost); ready.After(counts) {
		counts = ready
	}
	c.progress(ctx, now, j, running, now.Sub(counts))
}

// progress sets the steps of a job, which has trained for some time if it is running.
func (c *Controller) progress(ctx context.Context, now time.Time, j *job, running bool, trained time.Duration) {
	if c.truth == nil && c.Estimate != nil {
		c.truth = c.Estimate(c.cluster)
	}
	s, o := &j.state, &j.observed
	s.Ran = scheduler.Ran{}
	if j.work == 0 {
		j.work = c.steps(ctx, &o.Spec)
	}
	least := leastLeft
	switch {
	case o.Done >= 0:
		s.Done, least = o.Done, 1e-12
		if running {
			if j.paced.see(j.want.RunGeneration, now, o.Done); j.want.settled() {
				s.Ran = j.paced.ran()
			}
			c.rateOn(ctx, j)
		}
	case running && trained > 0:
		s.Done += c.rateOn(ctx, j) * trained.Seconds()
	}
	if !(s.Done >= 0) || math.IsInf(s.Done, 0) {
		s.Done = 0
	}
	s.Remaining = max(j.work-s.Done, j.work*least)
}

// leastLeft is the part of its work that a job of estimated progress has left at least: it has
// not ended.
const leastLeft = 1e-3

// steps returns the work of a job.
func (c *Controller) steps(ctx context.Context, j *spec.Job) float64 {
	if j.Steps > 0 {
		return j.Steps
	}
	if c.truth != nil {
		if n, err := c.truth.Steps(ctx, j); err == nil && n > 0 {
			return n
		}
	}
	return max(j.Duration.Seconds(), 1)
}

// rateOn returns the predicted speed of a job as it runs, in steps/s. If it is unknown, a step is a second.
func (c *Controller) rateOn(ctx context.Context, j *job) float64 {
	g, err := c.grant(&j.observed.Spec, j.want.RunPlan, j.want.RunSlots)
	if err != nil || g == nil {
		return 0
	}
	if j.rateOf != nil && j.rateOf.Same(g) {
		return j.rate
	}
	j.rateOf, j.rate = g, 0
	if c.truth == nil {
		if j.observed.Spec.Steps == 0 {
			j.rate = 1
		}
		return j.rate
	}
	group := &c.cluster.Groups[c.cluster.GroupOf(g.Slots[0].Node)]
	if rate, err := c.truth.StepsPerSec(ctx, &j.observed.Spec, g, group); err == nil {
		j.rate = rate
	}
	return j.rate
}

// since returns a time as snapshots have it.
func (c *Controller) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(c.epoch)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// dropEnded drops the jobs that are not in the observation any more. Those that are not in an older one yet keep what they
// have, for StaleAfter.
func (c *Controller) dropEnded(ctx context.Context, now time.Time, s *State) {
	for _, j := range c.jobs {
		switch {
		case j.seen:
			j.seen = false
			continue
		case !s.olderThan(j):
			c.drop(j, s.Cancelled)
			continue
		case j.missing.IsZero():
			j.missing = now
		case now.Sub(j.missing) >= c.StaleAfter:
			c.drop(j, []spec.JobID{j.observed.Spec.ID}) // whether it is complete is unknown
			continue
		}
		if j.managed {
			c.setGrant(j)
			c.advance(ctx, now, j)
		}
	}
	slices.SortFunc(c.ended, func(a, b scheduler.JobState) int { return cmp.Compare(a.Order, b.Order) })
}

// drop drops a job that has ended. One that was cancelled has not done all its work.
func (c *Controller) drop(j *job, cancelled []spec.JobID) {
	id := j.observed.Spec.ID
	delete(c.jobs, id)
	delete(c.faults, "job "+string(id))
	if !j.managed {
		return
	}
	c.changed = true
	j.state.Phase, j.state.Grant = scheduler.Finished, nil
	if !slices.Contains(cancelled, id) {
		j.state.Done, j.state.Remaining = j.work, 0
	}
	c.ended = append(c.ended, j.state)
}
