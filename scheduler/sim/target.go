package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// step is the change of one job by a decision.
type step struct {
	*job
	from, to *scheduler.Grant // nil = none
}

// decide calls the policy, checks its decision and applies it.
func (e *engine) decide(ctx context.Context) error {
	if err := e.learn(ctx); err != nil {
		return err
	}
	e.ledger.SetLeaving(e.leaving())
	s := e.ledger.Snapshot(e.now)
	s.Ended = e.ended
	e.requestReasons(s)
	d, err := e.Policy.Decide(ctx, s)
	e.ended = e.ended[:0]
	if err == nil {
		e.postpone(s, &d)
		err = e.check(&d)
	}
	if err != nil {
		return fmt.Errorf("sim: policy %s at %v: %w", e.PolicyName, e.now, err)
	}
	if err := e.apply(ctx, &d); err != nil {
		return err
	}
	e.explain(s, &d)
	if e.Audit {
		if err := e.ledger.Audit(); err != nil {
			return fmt.Errorf("sim: policy %s at %v: %w", e.PolicyName, e.now, err)
		}
	}
	e.setWake(d.Wake)
	e.warn(d.Warnings)
	if d.Gap != nil {
		e.result.Gaps.add(*d.Gap)
	}
	e.usage()
	return nil
}

// check determines the changes of a decision and applies them to the ledger: no job is
// granted devices twice, and no node gives more than it has.
func (e *engine) check(d *scheduler.Decision) error {
	changes, err := scheduler.Check(e.ledger, e, e.now, d)
	if err != nil {
		return err
	}
	e.stops, e.starts = e.steps(e.stops[:0], changes.Stops), e.steps(e.starts[:0], changes.Starts)
	slices.SortFunc(e.stops, func(a, b step) int { return cmp.Compare(b.place, a.place) })
	e.changes = e.changes[:0]
	for _, steps := range [][]step{e.stops, e.starts} {
		for _, s := range steps {
			s.advance(e.now)
			e.changes = append(e.changes, scheduler.Change{Job: &s.state, To: s.to})
		}
	}
	return e.ledger.Apply(e.changes)
}

// steps appends changes to out.
func (e *engine) steps(out []step, changes []scheduler.Change) []step {
	for _, c := range changes {
		out = append(out, step{e.byOrder[c.Job.Order], c.Job.Grant, c.To})
	}
	return out
}

// Find implements scheduler.System.
func (e *engine) Find(id spec.JobID) *scheduler.JobState {
	if j := e.byID[id]; j != nil {
		return &j.state
	}
	return nil
}

// Holding implements scheduler.System.
func (e *engine) Holding() iter.Seq[*scheduler.JobState] {
	return func(yield func(*scheduler.JobState) bool) {
		for _, j := range e.holding {
			if !yield(&j.state) {
				return
			}
		}
	}
}

// apply applies a checked decision.
func (e *engine) apply(ctx context.Context, d *scheduler.Decision) error {
	for _, s := range e.stops {
		s.state.Restarts++
		e.result.Jobs[s.state.Order].Preemptions++
		e.drop(s.job)
		if e.WaitFrom != nil {
			s.state.Since = e.WaitFrom(e.now, e.Round)
		}
		e.observe(Stopped, s.state.Job, s.from, d.Why[s.state.Job.ID])
	}
	for _, s := range e.starts {
		if err := e.start(ctx, s, d.Why[s.to.Job]); err != nil {
			return err
		}
	}
	return nil
}

// drop takes away the devices of j, advanced to now.
func (e *engine) drop(j *job) {
	e.held -= counted(j.state.Grant)
	j.release(e.now)
	j.state.StartCost = e.startCost(j, j.last, false)
	last := len(e.holding) - 1
	e.holding[j.place] = e.holding[last]
	e.holding[j.place].place = j.place
	e.holding = e.holding[:last]
}

// start gives a job its new grant and charges its start cost. A change of the colocated
// job on the same devices costs nothing.
func (e *engine) start(ctx context.Context, s step, why string) error {
	j, g := s.job, s.to
	if e.LiveMove != nil && s.from != nil && e.groupOf(s.from) == e.groupOf(g) && e.LiveMove(s.from, g) {
		j.state.Grant, j.last, j.progress.speed = g, g, e.gang(g)
		e.observe(Moved, j.state.Job, g, why)
		return nil
	}
	group := e.groupOf(g)
	stages, err := e.stages(ctx, j, g, group)
	if err != nil {
		return fmt.Errorf("sim: policy %s at %v: job %s (%s), plan %s on %s: %w",
			e.PolicyName, e.now, g.Job, j.state.Job.Model.Name, g.Plan, g.Shape.Devices, err)
	}
	if s.from != nil && g.Stays(s.from) {
		e.pace(j, g, stages, why)
		return nil
	}
	event, running := Started, false
	if s.from != nil {
		event, running = Moved, j.state.Phase == scheduler.Running
		j.state.Restarts++
		e.drop(j)
	}
	e.push(j, e.hold(j, g, e.progress(j, g, stages, e.now+e.startCost(j, g, running))))
	e.observe(event, j.state.Job, g, why)
	return nil
}

// groupOf returns the cluster group of the nodes of g.
func (e *engine) groupOf(g *scheduler.Grant) *spec.NodeGroup {
	return &e.Cluster.Groups[e.groups[g.Slots[0].Node]]
}

// hold gives j devices and returns its completion time.
func (e *engine) hold(j *job, g *scheduler.Grant, c progress) time.Duration {
	j.place = len(e.holding)
	e.holding = append(e.holding, j)
	exact := j.hold(e.now, g, c)
	j.state.StartCost = e.startCost(j, nil, true)
	e.held += counted(g)
	return exact
}

// push plans the completion of j, exactly then, and its observation.
func (e *engine) push(j *job, exact time.Duration) {
	e.planObservation(j)
	done := e.noticed(exact, j.ends)
	if e.End != nil {
		j.ends = e.End(j.ends, done)
	}
	e.queue.add(jobDone(j, done))
}

// stages returns the true speeds of j on g.
func (e *engine) stages(ctx context.Context, j *job, g *scheduler.Grant, group *spec.NodeGroup) ([]Stage, error) {
	if g.With != "" {
		return e.sharedStages(ctx, j, g, group)
	}
	stages := j.one[:]
	var err error
	if staged, ok := e.Truth.(Staged); ok {
		stages, err = staged.Stages(ctx, j.state.Job, g, group)
	} else {
		j.one[0].Until = math.Inf(1)
		j.one[0].Rate, err = e.Truth.StepsPerSec(ctx, j.state.Job, g, group)
	}
	if err == nil && len(stages) == 0 {
		err = errors.New("the truth has no speed")
	}
	for i := range stages {
		if rate := stages[i].Rate; err == nil && !finitePositive(rate) {
			err = fmt.Errorf("the truth has %g steps/s, want above 0", rate)
		}
	}
	return stages, err
}

func jobDone(j *job, at time.Duration) event {
	return event{at: at, kind: completion, job: j, version: j.version}
}

// setWake plans a call of the policy, with rounds at the next start of one; 0 = only at
// the next event, as is any time after maxIdle idle wake-ups.
func (e *engine) setWake(at time.Duration) {
	if at = e.roundFrom(at); e.idle > maxIdle {
		at = 0
	}
	e.wake++
	e.wakeAt = at
	if at > 0 {
		e.queue.add(event{at: at, kind: wakeUp, version: e.wake})
	}
}

// warn keeps each warning once, in order of first appearance.
func (e *engine) warn(texts []string) {
	for _, t := range texts {
		if !e.warned[t] {
			e.warned[t] = true
			e.result.Warnings = append(e.result.Warnings, t)
		}
	}
}

// usage adds a step to the utilisation if something changed.
func (e *engine) usage() {
	u := Usage{At: e.now, Held: e.held, Waiting: len(e.byID) - len(e.holding) + e.outside}
	all := e.result.Usage
	if n := len(all); n > 0 && all[n-1].Held == u.Held && all[n-1].Waiting == u.Waiting {
		return
	}
	e.result.Usage = append(all, u)
}
