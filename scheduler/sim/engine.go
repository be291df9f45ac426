package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Run simulates c.Jobs under c.Policy until the scored jobs are done, or
// nothing can happen any more. Two runs of one Config give Results that differ
// only in Elapsed, provided policy and truth are deterministic.
func Run(ctx context.Context, c Config) (*Result, error) {
	began := time.Now()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	e := newEngine(c)
	run := e.run
	if c.Quirks.Barrier {
		run = e.runBarrier
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
	byID    map[spec.JobID]*job  // who is inside
	byOrder []*job               // by record, nil = not inside
	holding []*job               // those with a grant, in no meaningful order
	lines   []*line              // who waits outside
	outside int                  // how many
	ended   []scheduler.JobState // since the last decision

	groups  []int  // of each node
	starts  []step // of the decision checked last, as are stops
	stops   []step
	changes []scheduler.Change              // both, for the ledger
	company map[spec.JobID]*scheduler.Grant // what those are to hold who change, if any of them shares devices
	round   uint64
	wake    uint32        // version of the wake-up that counts
	wakeAt  time.Duration // when it is, 0 = there is none
	scored  int           // scored jobs not done yet
	held    int           // devices
	idle    int           // times in a row at which nothing ran and nobody was to come
	barren  int           // those of them at which nodes went down or up
	warned  map[string]bool
	speeds  []func(time.Duration) (float64, time.Duration) // by node, of those asked for
	nodes   []node                                         // nil without failures
	tells   *teller                                        // nil = nothing is to be explained
	looks   queue                                          // at jobs, to come
	sights  []spec.Measurement                             // since the last decision
}

func newEngine(c Config) *engine {
	if c.Horizon == 0 {
		c.Horizon = defaultHorizon
	}
	e := &engine{
		Config: c,
		result: &Result{Policy: c.PolicyName, Devices: c.Cluster.Devices(), Jobs: records(c)},
		byID:   map[spec.JobID]*job{},
		groups: scheduler.NewInventory(c.Cluster).Group,
		warned: map[string]bool{},
	}
	if c.Speeds != nil {
		e.speeds = make([]func(time.Duration) (float64, time.Duration), c.Cluster.Nodes())
	}
	e.byOrder = make([]*job, len(e.result.Jobs))
	e.ledger = scheduler.NewLedger(c.Cluster, func(j *scheduler.JobState, now time.Duration) { e.byOrder[j.Order].advance(now) })
	if c.Resume != nil {
		e.now = c.Resume.At
	}
	if c.Failures != nil {
		e.expectFailures()
	}
	if c.Explain != nil {
		e.tells = newTeller(c.Explain)
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
		if !ok || e.barren > maxIdle {
			return nil
		}
		if at > e.Horizon {
			e.now = e.Horizon // who holds devices does so until then
			return nil
		}
		e.now = at
		if err := e.instant(ctx); err != nil {
			return err
		}
	}
	return nil
}

// instant carries out what happens now and asks the policy, in round mode only
// if a round begins.
func (e *engine) instant(ctx context.Context) error {
	e.see()
	gone := e.completions()
	e.outages()
	came, err := e.submit(ctx)
	if err != nil {
		return err
	}
	if gone || came {
		if err := e.letIn(ctx); err != nil {
			return err
		}
	}
	e.wakeUps()
	e.countIdle(gone || came)
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

// maxIdle bounds how often in a row a policy may be asked with nothing running
// and nobody to arrive: then it waits for something that never comes, and is not
// woken any more. What may still come is that nodes go down or up, after which it
// is woken wakesAfterOutage times more; the run is given up after as many times
// at which they did, without a job that got any further.
const (
	maxIdle          = 1000
	wakesAfterOutage = 10
)

// countIdle counts the times at which nobody arrived, ended or runs.
func (e *engine) countIdle(happened bool) {
	if happened || e.held > 0 || e.next < len(e.result.Jobs) {
		e.idle, e.barren = 0, 0
		return
	}
	e.idle++
}

// nextTime returns when something happens next, dropping stale events.
func (e *engine) nextTime() (time.Duration, bool) {
	for len(e.queue.heap) > 0 && e.stale(e.queue.heap[0]) {
		e.queue.pop()
	}
	arrives := e.next < len(e.result.Jobs)
	switch {
	case len(e.queue.heap) > 0 && arrives:
		return min(e.queue.heap[0].at, max(e.seen(&e.result.Jobs[e.next].Job), e.now)), true
	case len(e.queue.heap) > 0:
		return e.queue.heap[0].at, true
	case arrives:
		return max(e.seen(&e.result.Jobs[e.next].Job), e.now), true
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

// due pops the next event of kind k that happens now.
func (e *engine) due(k kind) (event, bool) {
	for len(e.queue.heap) > 0 {
		top := e.queue.heap[0]
		if stale := e.stale(top); !stale && (top.at > e.now || top.kind != k) {
			break
		} else if e.queue.pop(); !stale {
			return top, true
		}
	}
	return event{}, false
}

// completions ends every job that is done now, and reports whether there was one.
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
	e.leave(j, grant)
	e.leftAlone(grant)
	e.ended = append(e.ended, j.state)
	r := &e.result.Jobs[j.state.Order]
	r.Finished, r.End = true, at
	if j.scored {
		e.scored--
	}
}

// leave takes j out of the system, which held a grant until now, and writes its
// record.
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

// wakeUps takes the wake-up that is due.
func (e *engine) wakeUps() {
	if _, ok := e.due(wakeUp); ok {
		e.wakeAt = 0
	}
}

func (e *engine) observe(k EventKind, j *spec.Job, g *scheduler.Grant, why string) {
	e.tell(Event{At: e.now, Kind: k, Job: j, Grant: g, Why: why})
}

func (e *engine) tell(ev Event) {
	if e.Observe != nil {
		e.Observe(ev)
	}
	if e.tells != nil {
		e.tells.tell(ev)
	}
}

// finish writes down what is left when the run is over.
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
	if e.Sightings != nil {
		learned := e.Sightings.Learner.Learned()
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
	case e.barren > maxIdle && (j.state.Grant != nil || j.state.Failures > 0):
		return fmt.Sprintf("nodes went down and up %d times in a row without a job that got any further", e.barren)
	case j.state.Grant != nil || j.current.rate > 0:
		return fmt.Sprintf("would end after the horizon of %v", e.Horizon)
	case max(e.idle, e.barren) > maxIdle:
		return fmt.Sprintf("the policy gave it no devices, asked %d times in a row with nothing running", max(e.idle, e.barren))
	}
	return "the policy gave it no devices, and nothing was left to happen"
}
