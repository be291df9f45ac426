package sim

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
	e.round++
	if err := e.findStarts(d); err != nil {
		return err
	}
	if err := e.findStops(d); err != nil {
		return err
	}
	if d.Wake != 0 && d.Wake <= e.now {
		return fmt.Errorf("wake-up at %v is not after now", d.Wake)
	}
	if err := e.checkPairs(); err != nil {
		return err
	}
	e.changes = e.changes[:0]
	for _, steps := range [][]step{e.stops, e.starts} {
		for _, s := range steps {
			s.advance(e.now)
			e.changes = append(e.changes, scheduler.Change{Job: &s.state, To: s.to})
		}
	}
	return e.ledger.Apply(e.changes)
}

// findStarts collects the jobs with another grant than they hold, in the order of the
// grants.
func (e *engine) findStarts(d *scheduler.Decision) error {
	e.starts = e.starts[:0]
	for _, g := range d.Grants {
		if g == nil {
			return errors.New("a nil grant")
		}
		j := e.byID[g.Job]
		switch {
		case j == nil:
			return fmt.Errorf("job %s is granted devices but is not in the queue", g.Job)
		case j.stamp == e.round:
			return fmt.Errorf("job %s is granted devices twice", g.Job)
		}
		j.stamp = e.round
		if g == j.state.Grant {
			continue
		}
		if err := e.checkGrant(j.state.Job, g); err != nil {
			return err
		}
		if !g.Same(j.state.Grant) {
			e.starts = append(e.starts, step{j, j.state.Grant, g})
		}
	}
	return nil
}

// findStops collects the jobs that lose their grant, the last of holding first.
func (e *engine) findStops(d *scheduler.Decision) error {
	e.stops = e.stops[:0]
	if !d.Keep {
		if len(d.Stops) > 0 {
			return fmt.Errorf("job %s is stopped by name in a decision without Keep", d.Stops[0])
		}
		for i := len(e.holding) - 1; i >= 0; i-- {
			if j := e.holding[i]; j.stamp != e.round {
				e.stops = append(e.stops, step{job: j, from: j.state.Grant})
			}
		}
		return nil
	}
	for _, id := range d.Stops {
		j := e.byID[id]
		switch {
		case j == nil || j.state.Grant == nil:
			return fmt.Errorf("job %s is stopped but has no devices", id)
		case j.stamp == e.round:
			return fmt.Errorf("job %s is stopped, but also granted devices or stopped twice", id)
		}
		j.stamp = e.round
		e.stops = append(e.stops, step{job: j, from: j.state.Grant})
	}
	slices.SortFunc(e.stops, func(a, b step) int { return cmp.Compare(b.place, a.place) })
	return nil
}

// checkGrant checks a grant by itself.
func (e *engine) checkGrant(j *spec.Job, g *scheduler.Grant) error {
	counts := make([]int, 0, len(g.Slots))
	var held spec.Host
	for i := range g.Slots {
		if err := e.checkSlot(j, g, i); err != nil {
			return fmt.Errorf("job %s: %w", j.ID, err)
		}
		held = held.Plus(g.Slots[i].Host)
		counts = append(counts, g.Slots[i].Devices)
	}
	if len(counts) == 0 {
		return fmt.Errorf("job %s: a grant without devices", j.ID)
	}
	if got := spec.NewShape(counts...).Devices; got != g.Shape.Devices {
		return fmt.Errorf("job %s: slots are %s, but the shape is %s", j.ID, got, g.Shape.Devices)
	}
	if needs := g.Shape.Host(); !held.Covers(needs) {
		return fmt.Errorf("job %s: the shape needs %v, the slots have %v of hosts", j.ID, needs, held)
	}
	if err := checkPlan(j, g); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	if group := e.groupOf(g); !j.Accepts(group) {
		return fmt.Errorf("job %s: node %d has %s, the job requests %s", j.ID, g.Slots[0].Node, group.Accelerator.Name, j.Accelerator)
	}
	return nil
}

// checkSlot checks slot i of a grant of j.
func (e *engine) checkSlot(j *spec.Job, g *scheduler.Grant, i int) error {
	s := g.Slots[i]
	if s.Node < 0 || s.Node >= len(e.groups) {
		return fmt.Errorf("node %d is not in 0..%d", s.Node, len(e.groups)-1)
	}
	if e.nodes != nil && e.nodes[s.Node].down > 0 {
		return fmt.Errorf("node %d is down", s.Node)
	}
	if least := min(s.Devices, s.Workers, s.Servers); least < 0 || s.Devices+s.Workers+s.Servers < 1 {
		return fmt.Errorf("%s of node %d", s.What(), s.Node)
	}
	if i > 0 && s.Node <= g.Slots[i-1].Node {
		return fmt.Errorf("node %d follows node %d, want slots ascending by node", s.Node, g.Slots[i-1].Node)
	}
	if e.groups[s.Node] != e.groups[g.Slots[0].Node] {
		return fmt.Errorf("nodes %d and %d are of different groups", g.Slots[0].Node, s.Node)
	}
	if need := j.HostFor(s.Devices+s.Workers, s.Servers); !s.Host.Covers(need) {
		return fmt.Errorf("%v of the host of node %d for %s, it needs %v", s.Host, s.Node, s.What(), need)
	}
	return nil
}

// checkPlan checks that the plan of a grant of j agrees with its slots.
func checkPlan(j *spec.Job, g *scheduler.Grant) error {
	n, devices, workers := g.Plan.Devices(), g.Devices(), g.Workers()
	switch {
	case j.OnCPUs() && devices != 0:
		return fmt.Errorf("%s granted, its replicas run on CPUs alone", spec.Count(devices, "device"))
	case !j.OnCPUs() && workers != 0:
		return fmt.Errorf("%s on CPUs granted, its replicas run on devices", spec.Count(workers, "worker"))
	case j.OnCPUs() && n != workers:
		return fmt.Errorf("plan %s is for %s, %d are granted", g.Plan, spec.Count(n, "replica"), workers)
	case !j.OnCPUs() && n != devices:
		return fmt.Errorf("plan %s is for %s, %s are granted", g.Plan, spec.Count(n, "device"), g.Shape.Devices)
	case g.Plan.ParamServers != g.Servers():
		return fmt.Errorf("plan %s has %s, %d are granted", g.Plan, spec.Count(g.Plan.ParamServers, "parameter server"), g.Servers())
	}
	return nil
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
