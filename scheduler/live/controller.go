package live

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Options are those of a Controller. Cluster and Policy are required.
type Options struct {
	Cluster Cluster
	// Policy returns a new policy. It is called at the first decision, and again when the
	// cluster has other nodes and when Refitted says so.
	Policy func(c spec.Cluster) (scheduler.Policy, error)
	// Estimate has the work and the speeds of jobs that report no progress; nil = a step is a
	// second, and only reports count.
	Estimate func(c spec.Cluster) sim.Truth
	// Refitted, if set, is called in every Tick: whether the estimates of Policy and Estimate have changed since the call
	// before. Then both are made anew, and the policy decides. It must be fast.
	Refitted func() bool
	// Planner, if set, returns what is wrong with the source of predictions, such as a server that does not answer, or nil.
	// While it returns an error, jobs that run as decided keep their targets: predictions of another source are not
	// comparable with those that they were decided by. It must be fast.
	Planner func() error
	// Epoch is time 0 of what policies see; zero = the earliest submission when the controller
	// starts.
	Epoch     time.Time
	StartCost time.Duration // expected time from a start until training begins
	// MaxRestarts is the most running jobs stopped by decisions within an hour. Further
	// restarts wait. 0 = no limit.
	MaxRestarts int
	DecideLimit time.Duration // longest decision, 0 = a minute
	Writers     int           // writes at a time, 0 = 16
	DryRun      bool          // decide and report, write nothing
	// StaleAfter is how long an observation older than a write of ours is waited for, before
	// it counts as a change by others; 0 = 10 s. One older than a job counts as its end then.
	StaleAfter time.Duration
	Resync     time.Duration    // longest time between two observations, 0 = 30 s
	Now        func() time.Time // the clock, nil = time.Now
	// OnEvent, if set, receives every event, one at a time. It must be fast.
	OnEvent func(Event)
	// OnState, if set, receives every observation before the decision on it. It must be fast, and
	// may not change the state.
	OnState func(at time.Time, s *State)
	// OnTick, if set, receives a report at the end of every Tick.
	OnTick func(Report)
}

func (o *Options) setDefaults() {
	for field, def := range map[*time.Duration]time.Duration{&o.DecideLimit: time.Minute, &o.StaleAfter: 10 * time.Second, &o.Resync: 30 * time.Second} {
		if *field == 0 {
			*field = def
		}
	}
	if o.Writers == 0 {
		o.Writers = 16
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	if o.Refitted == nil {
		o.Refitted = func() bool { return false }
	}
	if o.Planner == nil {
		o.Planner = func() error { return nil }
	}
	if o.OnState == nil {
		o.OnState = func(time.Time, *State) {}
	}
	if o.OnTick == nil {
		o.OnTick = func(Report) {}
	}
}

// Validate returns an error that names the first option that is wrong.
func (o Options) Validate() error {
	switch {
	case o.Cluster == nil || o.Policy == nil:
		return errors.New("live: no cluster or no policy")
	case o.StartCost < 0:
		return fmt.Errorf("live: start cost %v is negative", o.StartCost)
	case o.MaxRestarts < 0 || o.Writers < 0:
		return fmt.Errorf("live: %d restarts per hour, %d writers, want at least 0", o.MaxRestarts, o.Writers)
	case o.DecideLimit < 0 || o.StaleAfter < 0 || o.Resync < 0:
		return fmt.Errorf("live: decisions limited to %v, stale after %v, resync %v, want at least 0", o.DecideLimit, o.StaleAfter, o.Resync)
	}
	return nil
}

// Controller drives a cluster by a policy. Use New.
type Controller struct {
	Options
	notify sync.Mutex
	stats  Stats

	layout             // the nodes
	epoch    time.Time // time 0 of snapshots
	jobs     map[spec.JobID]*job
	order    []*job // managed jobs with targets that may change, by arrival
	ended    []scheduler.JobState
	numbered int                 // numbers of jobs used so far
	faults   map[string][]string // reported, by object
	faulted  map[string]bool     // objects with a fault in this tick
	policy   scheduler.Policy
	truth    sim.Truth
	checker  *scheduler.Ledger // of the nodes of this tick, without jobs
	even     bool

	away       bool        // the source of predictions does not answer
	changed    bool        // since the last decision
	wake       time.Time   // of the policy, zero = none
	retry      time.Time   // of a failed decision, zero = none
	failures   int         // decisions that failed or were refused since the last that was made
	generation int64       // highest so far
	restarts   []time.Time // within the last hour, ascending
	refusal    string      // reported last
}

// New returns a controller. The error is that of Validate.
func New(o Options) (*Controller, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.setDefaults()
	return &Controller{Options: o, epoch: o.Epoch, jobs: map[spec.JobID]*job{}, faults: map[string][]string{}, faulted: map[string]bool{}}, nil
}

// Run repeats Tick when the cluster changes or the policy asks for it, until ctx is done; then
// it returns nil, and jobs run on. An error of Watch ends it, all others are events.
func (c *Controller) Run(ctx context.Context) error {
	changes, err := c.Cluster.Watch(ctx)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		next, err := c.Tick(ctx)
		if err != nil && ctx.Err() == nil {
			c.faulty(Fault{"cluster", err})
		}
		timer := time.NewTimer(max(next.Sub(c.Now()), minTick))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case _, open := <-changes:
			if !open {
				return nil
			}
		}
		timer.Stop()
	}
	return nil
}

const (
	minTick     = 10 * time.Millisecond // between two ticks
	retryWrite  = time.Second           // after a failed write or observation
	retryDecide = 10 * time.Second      // after a failed or refused decision, at most: after the first a second, and then twice as long each time
)

// Tick observes the cluster, decides if there is reason to, and lets every job take a step. It
// returns when it should be called again at the latest. The error is that of Observe.
func (c *Controller) Tick(ctx context.Context) (next time.Time, err error) {
	c.stats.Ticks++
	c.stats.Decide, c.stats.Write = 0, 0
	clear(c.faulted)
	defer func() {
		c.checkPlanner()
		c.report(err == nil)
	}()
	began := time.Now()
	state, err := c.Cluster.Observe(ctx)
	c.stats.Observe = time.Since(began)
	now := c.Now()
	if err != nil {
		c.stats.FailedObservations++
		return now.Add(retryWrite), err
	}
	delete(c.faults, "cluster")
	if c.Refitted() {
		c.stats.Refits++
		c.renew()
		c.event(Event{Kind: Refitted, Object: "policy", Message: "performance models changed: decides anew"})
	}
	c.OnState(now, state)
	c.merge(ctx, now, state)
	if c.due(now) {
		began = time.Now()
		if !c.decide(ctx, now) {
			c.merge(ctx, now, state)
			if !c.decide(ctx, now) { // it was back for a moment
				c.retry = now.Add(retryWrite)
			}
		}
		c.stats.Decide = time.Since(began)
	}
	next = now.Add(c.Resync)
	if !c.DryRun {
		began = time.Now()
		if c.reconcile(ctx, now) {
			next = now.Add(retryWrite)
		}
		c.stats.Write = time.Since(began)
	}
	for _, at := range []time.Time{c.wake, c.retry} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next, nil
}

// checkPlanner reports what is wrong with the source of predictions, once until it is right again.
func (c *Controller) checkPlanner() {
	if err := c.Planner(); err != nil {
		c.faulty(Fault{"planner", err})
	} else {
		delete(c.faults, "planner")
	}
}

// renew drops the policy and what was predicted, so that both are made anew, and decides.
func (c *Controller) renew() {
	c.policy, c.truth, c.changed = nil, nil, true
	for _, j := range c.jobs {
		j.rateOf, j.rate = nil, 0
	}
}

// due reports whether the policy is to be called.
func (c *Controller) due(now time.Time) bool {
	if !c.retry.IsZero() {
		return !now.Before(c.retry)
	}
	return c.changed || !c.wake.IsZero() && !now.Before(c.wake)
}

// Find implements scheduler.System.
func (c *Controller) Find(id spec.JobID) *scheduler.JobState {
	if j := c.jobs[id]; j != nil && j.managed {
		return &j.state
	}
	return nil
}

// Holding implements scheduler.System.
func (c *Controller) Holding() iter.Seq[*scheduler.JobState] {
	return func(yield func(*scheduler.JobState) bool) {
		for _, j := range c.order {
			if j.state.Grant != nil && !yield(&j.state) {
				return
			}
		}
	}
}

// event reports e.
func (c *Controller) event(e Event) {
	e.At, e.DryRun = c.Now(), c.DryRun
	if e.Job != nil {
		e.Object = "job " + string(e.Job.Spec.ID)
	}
	c.notify.Lock()
	defer c.notify.Unlock()
	c.OnEvent(e)
	if n, ok := c.Cluster.(Notifier); ok && !c.DryRun {
		n.Notify(e)
	}
}

// maxFaults bounds the faults of an object that are known to be reported.
const maxFaults = 16

// faulty reports a fault of an object, unless it did so before.
func (c *Controller) faulty(f Fault) {
	c.faulted[f.Object] = true
	text := f.Err.Error()
	known := c.faults[f.Object]
	if slices.Contains(known, text) {
		return
	}
	if len(known) == maxFaults {
		known = slices.Delete(known, 0, 1)
	}
	c.faults[f.Object] = append(known, text)
	c.event(Event{Kind: Faulty, Object: f.Object, Message: text, Warning: true})
}

// countRestart reports whether a running job may be stopped now, and counts that once for its target.
func (c *Controller) countRestart(now time.Time, j *job) bool {
	if j.counted == j.want.Generation || c.on(j.holds(), Down) {
		return true
	}
	c.restarts = slices.DeleteFunc(c.restarts, func(t time.Time) bool { return now.Sub(t) >= time.Hour })
	if c.MaxRestarts > 0 && len(c.restarts) >= c.MaxRestarts {
		return false
	}
	c.restarts = append(c.restarts, now)
	j.counted = j.want.Generation
	return true
}
