package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Run simulates c.Jobs under c.Policy until the scored jobs are done or no event is
// left. If policy and truth are deterministic, two runs of one Config differ only in
// Elapsed.
func Run(ctx context.Context, c Config) (*Result, error) {
	began := time.Now()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	e := newEngine(c)
	run := e.run
	if c.Lockstep != nil {
		run = e.runLockstep
	}
	if p, ok := c.Policy.(scheduler.Fluid); ok {
		run = func(ctx context.Context) error { return e.runFluid(ctx, p) }
	}
	if err := run(ctx); err != nil {
		return nil, err
	}
	e.finish()
	e.result.Elapsed = time.Since(began)
	return e.result, nil
}

type engine struct {
	Config
	now    time.Duration
	queue  queue
	result *Result
	next   int // first record not yet submitted

	ledger  *scheduler.Ledger
	byID    map[spec.JobID]*job // jobs in the system
	byOrder []*job              // by record, nil = not in the system
	holding []*job              // jobs with a grant, in no meaningful order
	lines   []*line             // jobs that admission holds
	outside int                 // number of held jobs
	// suspended are held jobs that were in the system before, by record.
	suspended map[int]*job
	toldHeld  map[int]bool         // records with a Held event, under a scheduler.Lender
	ended     []scheduler.JobState // since the last decision

	groups       []int  // of each node
	starts       []step // of the decision checked last, as are stops
	stops        []step
	changes      []scheduler.Change // both, for the ledger
	wake         uint32             // version of the wake-up that counts
	wakeAt       time.Duration      // its time, 0 = none
	scored       int                // scored jobs not done yet
	held         int                // devices
	idle         int                // consecutive events without a running job and without a later arrival
	idleOutages  int                // number of these at which nodes went down or up
	quick        int                // wake-ups since quickSince
	quickSince   time.Duration
	warned       map[string]bool
	speeds       []func(time.Duration) (float64, time.Duration) // by node, of those used so far
	nodes        []node                                         // nil without failures
	wanted       map[int]scheduler.Slot                         // by node, what others want and do not have yet
	explainer    *explainer                                     // nil = no explanations
	observations queue                                          // planned, of jobs
	observed     []spec.Measurement                             // since the last decision
}

func newEngine(c Config) *engine {
	if c.Horizon == 0 {
		c.Horizon = defaultHorizon
	}
	e := &engine{
		Config:       c,
		result:       &Result{Policy: c.PolicyName, Devices: c.Cluster.Devices(), Jobs: records(c)},
		byID:         map[spec.JobID]*job{},
		queue:        newQueue(),
		observations: newQueue(),
		groups:       scheduler.NewInventory(c.Cluster).Group,
		warned:       map[string]bool{},
	}
	if c.Speeds != nil {
		e.speeds = make([]func(time.Duration) (float64, time.Duration), c.Cluster.Nodes())
	}
	e.byOrder = make([]*job, len(e.result.Jobs))
	e.ledger = scheduler.NewLedger(c.Cluster, func(j *scheduler.JobState, now time.Duration) { e.byOrder[j.Order].advance(now) })
	if c.Resume != nil {
		e.now = c.Resume.At
	}
	if c.hasOutages() {
		e.expectOutages()
	}
	e.expectOthers()
	if c.Explain != nil {
		e.explainer = newExplainer(c.Explain)
	}
	for i := range e.result.Jobs {
		if e.result.Jobs[i].Scored {
			e.scored++
		}
	}
	return e
}

// records returns a record for every job, in the order they enter.
func records(c Config) []JobRecord {
	order := make([]int, len(c.Jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return c.compare(&c.Jobs[a], &c.Jobs[b]) })
	out := make([]JobRecord, len(order))
	for i, k := range order {
		out[i] = JobRecord{Job: c.Jobs[k], Scored: c.Score == nil || c.Score(c.Jobs[k].ID)}
	}
	return out
}

func (e *engine) run(ctx context.Context) error {
	if e.Resume != nil {
		if err := e.resume(ctx); err != nil {
			return err
		}
	}
	for e.scored > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sim: %s stopped at %v: %w", e.PolicyName, e.now, err)
		}
		at, ok := e.nextTime()
		if !ok || e.idleOutages > maxIdle {
			return nil
		}
		if at > e.Horizon {
			e.now = e.Horizon // jobs hold their devices until then
			return nil
		}
		e.now = at
		if err := e.instant(ctx); err != nil {
			return err
		}
	}
	return nil
}

// instant processes the events of this instant and calls the policy, with rounds only
// if a round begins.
func (e *engine) instant(ctx context.Context) error {
	e.observeDue()
	completed := e.completions()
	completed = e.outages() || completed
	e.occupations()
	arrived, err := e.submit(ctx)
	if err != nil {
		return err
	}
	completed = e.cancellations() || completed
	if completed || arrived {
		if err := e.admitWaiting(ctx); err != nil {
			return err
		}
	}
	e.wakeUps()
	e.countIdle(completed || arrived)
	if err := e.countQuick(completed || arrived); err != nil {
		return err
	}
	if next := e.roundFrom(e.now); next > e.now {
		if e.wakeAt == 0 || e.wakeAt > next {
			e.setWake(next)
		}
		e.usage()
		return nil
	}
	if err := e.decide(ctx); err != nil {
		return err
	}
	return e.tune(ctx)
}

// maxIdle bounds the consecutive wake-ups of a policy without a running job and without
// a later arrival. After a node goes down or up the policy has wakesAfterOutage more. The
// run ends after maxIdle such outages without progress of any job.
const (
	maxIdle          = 1000
	wakesAfterOutage = 10
)

// countIdle counts the times without an arrival, a completion or a running job.
func (e *engine) countIdle(happened bool) {
	if happened || e.held > 0 || e.next < len(e.result.Jobs) {
		e.idle, e.idleOutages = 0, 0
		return
	}
	e.idle++
}

// maxQuick bounds the wake-ups within a second of simulated time. Quanta are
// milliseconds or longer; a number of seconds written as time.Duration is nanoseconds.
const maxQuick = 100_000

// countQuick counts the wake-ups since an arrival or a completion, in spans of a second.
func (e *engine) countQuick(happened bool) error {
	if happened || e.now-e.quickSince >= time.Second {
		e.quick, e.quickSince = 0, e.now
	}
	if e.quick++; e.quick > maxQuick {
		return fmt.Errorf("sim: policy %s at %v: more than %d wake-ups within %v: is Decision.Wake in nanoseconds?", e.PolicyName, e.now, maxQuick, e.now-e.quickSince)
	}
	return nil
}

// nextTime returns the time of the next event; it drops stale ones.
func (e *engine) nextTime() (time.Duration, bool) {
	for len(e.queue.Items) > 0 && e.stale(e.queue.Items[0]) {
		e.queue.Pop()
	}
	arrives := e.next < len(e.result.Jobs)
	switch {
	case len(e.queue.Items) > 0 && arrives:
		return min(e.queue.Items[0].at, max(e.arrives(&e.result.Jobs[e.next].Job), e.now)), true
	case len(e.queue.Items) > 0:
		return e.queue.Items[0].at, true
	case arrives:
		return max(e.arrives(&e.result.Jobs[e.next].Job), e.now), true
	}
	return 0, false
}

func (e *engine) stale(ev event) bool {
	switch ev.kind {
	case completion:
		return ev.version != ev.job.version
	case wakeUp:
		return ev.version != e.wake
	}
	return false
}

// due pops the next event of kind k at this instant.
func (e *engine) due(k kind) (event, bool) {
	for len(e.queue.Items) > 0 {
		top := e.queue.Items[0]
		if stale := e.stale(top); !stale && (top.at > e.now || top.kind != k) {
			break
		} else if e.queue.Pop(); !stale {
			return top, true
		}
	}
	return event{}, false
}

// completions ends all jobs that are done now and reports whether there was one.
func (e *engine) completions() (any bool) {
	for ; ; any = true {
		ev, ok := e.due(completion)
		if !ok {
			return any
		}
		ev.job.advance(e.now)
		e.complete(ev.job, ev.job.ends)
	}
}

// complete ends a job, advanced to now, that was done at a time.
func (e *engine) complete(j *job, at time.Duration) {
	grant := j.state.Grant
	if grant != nil {
		e.drop(j)
	}
	j.state.Done, j.state.Remaining, j.state.Phase = j.work, 0, scheduler.Finished
	e.observe(Completed, j.state.Job, grant, "")
	if e.Finished != nil {
		e.Finished()
	}
	e.leave(j, grant)
	e.unpair(grant)
	e.ended = append(e.ended, j.state)
	r := &e.result.Jobs[j.state.Order]
	r.Finished, r.End = true, at
	if j.scored {
		e.scored--
	}
}

// leave removes j, which held a grant until now, and writes its record.
func (e *engine) leave(j *job, held *scheduler.Grant) {
	e.note(j)
	e.ledger.Leave(&j.state, held)
	delete(e.byID, j.state.Job.ID)
	e.byOrder[j.state.Order] = nil
}

// note brings the record of j up to date with its state.
func (e *engine) note(j *job) {
	r := &e.result.Jobs[j.state.Order]
	r.Start, r.Attained, r.Restarts = j.state.FirstRun, j.state.Attained, j.state.Restarts
}

// wakeUps consumes the wake-up of this instant.
func (e *engine) wakeUps() {
	if _, ok := e.due(wakeUp); ok {
		e.wakeAt = 0
	}
}

func (e *engine) observe(k EventKind, j *spec.Job, g *scheduler.Grant, why string) {
	e.emit(Event{At: e.now, Kind: k, Job: j, Grant: g, Why: why})
}

func (e *engine) emit(ev Event) {
	if e.Observe != nil {
		e.Observe(ev)
	}
	if e.explainer != nil {
		e.explainer.event(ev)
	}
}

// finish completes the records when the run is over.
func (e *engine) finish() {
	for _, j := range e.byOrder {
		if j != nil {
			j.advance(e.now)
			e.note(j)
			e.result.Jobs[j.state.Order].Unfinished = e.whyUnfinished(j)
		}
	}
	for _, l := range e.lines {
		for _, r := range l.records {
			e.result.Jobs[r].Unfinished = "held back by admission: " + l.why
		}
	}
	for i := e.next; i < len(e.result.Jobs); i++ {
		e.result.Jobs[i].Unfinished = "not submitted before the run ended"
	}
	if e.Observations != nil {
		learned := e.Observations.Learner.Learned()
		e.result.Learned = &learned
	}
	if l, ok := e.Truth.(lookups); ok {
		e.result.Lookups.Exact, e.result.Lookups.Interpolated, e.result.Lookups.Modelled = l.Lookups()
	}
}

func (e *engine) whyUnfinished(j *job) string {
	switch {
	case e.scored == 0:
		return "the run ended when the scored jobs were done"
	case e.idleOutages > maxIdle && (j.state.Grant != nil || j.state.Failures > 0):
		return fmt.Sprintf("nodes went down and up %d times in a row without progress of any job", e.idleOutages)
	case j.state.Grant != nil || j.current.rate > 0:
		return fmt.Sprintf("would end after the horizon of %v", e.Horizon)
	case max(e.idle, e.idleOutages) > maxIdle:
		return fmt.Sprintf("the policy gave it no devices in %d consecutive decisions without a running job", max(e.idle, e.idleOutages))
	}
	return "the policy gave it no devices, and no events were left"
}
