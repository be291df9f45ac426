package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// decide asks the policy, checks its target and makes it the present.
func (e *engine) decide(ctx context.Context) error {
	s := e.snapshot()
	s.Ended = e.ended
	d, err := e.Policy.Decide(ctx, s)
	e.ended = e.ended[:0]
	if err != nil {
		return fmt.Errorf("sim: policy %s at %v: %w", e.PolicyName, e.now, err)
	}
	if err := e.check(&d); err != nil {
		return fmt.Errorf("sim: policy %s at %v: %w", e.PolicyName, e.now, err)
	}
	if err := e.apply(ctx, &d); err != nil {
		return err
	}
	e.setWake(d.Wake)
	e.warn(d.Warnings)
	e.usage()
	return nil
}

// check recounts the whole target: nobody is granted anything twice, and no
// node gives more than it has.
func (e *engine) check(d *scheduler.Decision) error {
	e.round++
	for _, g := range d.Grants { // only what this target touches need be cleared
		if g == nil {
			return errors.New("a nil grant")
		}
		for _, s := range g.Slots {
			if s.Node >= 0 && s.Node < len(e.used) {
				e.used[s.Node] = 0
			}
		}
	}
	e.target = e.target[:0]
	next := 0 // into active: targets tend to be in its order
	for _, g := range d.Grants {
		var j *job
		if j, next = e.whose(g, next); j == nil {
			return fmt.Errorf("job %s is granted devices but is not in the queue", g.Job)
		}
		if j.stamp == e.round {
			return fmt.Errorf("job %s is granted devices twice", g.Job)
		}
		j.stamp = e.round
		e.target = append(e.target, j)
		if g != j.state.Grant {
			if err := e.checkGrant(j.state.Job, g); err != nil {
				return err
			}
		}
		for _, s := range g.Slots {
			e.used[s.Node] += s.Devices
			if has := e.Cluster.Groups[e.groups[s.Node]].Devices; e.used[s.Node] > has {
				return fmt.Errorf("job %s: node %d has %d devices, %d are granted", g.Job, s.Node, has, e.used[s.Node])
			}
		}
	}
	if d.Wake != 0 && d.Wake <= e.now {
		return fmt.Errorf("wake-up at %v is not after now", d.Wake)
	}
	return nil
}

// whose returns the job a grant is for, nil if it is not there. Where the grant is
// what the first of active from next on to hold any holds, it is found without a
// look-up by name, and the next to look at is the one behind it.
func (e *engine) whose(g *scheduler.Grant, next int) (*job, int) {
	for next < len(e.active) && e.active[next].state.Grant == nil {
		next++
	}
	if next < len(e.active) && e.active[next].state.Grant == g {
		return e.active[next], next + 1
	}
	return e.byID[g.Job], next
}

// checkGrant checks a grant by itself.
func (e *engine) checkGrant(j *spec.Job, g *scheduler.Grant) error {
	counts := make([]int, 0, len(g.Slots))
	for i, s := range g.Slots {
		if s.Node < 0 || s.Node >= len(e.used) {
			return fmt.Errorf("job %s: node %d is not in 0..%d", j.ID, s.Node, len(e.used)-1)
		}
		if s.Devices < 1 {
			return fmt.Errorf("job %s: %d devices of node %d", j.ID, s.Devices, s.Node)
		}
		if i > 0 && s.Node <= g.Slots[i-1].Node {
			return fmt.Errorf("job %s: node %d follows node %d, want slots ascending by node", j.ID, s.Node, g.Slots[i-1].Node)
		}
		if e.groups[s.Node] != e.groups[g.Slots[0].Node] {
			return fmt.Errorf("job %s: nodes %d and %d are of different groups", j.ID, g.Slots[0].Node, s.Node)
		}
		counts = append(counts, s.Devices)
	}
	if len(counts) == 0 {
		return fmt.Errorf("job %s: a grant without devices", j.ID)
	}
	if got := spec.NewShape(counts...).Devices; got != g.Shape.Devices {
		return fmt.Errorf("job %s: slots are %s, the shape says %s", j.ID, got, g.Shape.Devices)
	}
	if n := g.Plan.Devices(); n != g.Shape.Total() {
		return fmt.Errorf("job %s: plan %s is for %d devices, %s are granted", j.ID, g.Plan, n, g.Shape.Devices)
	}
	if group := &e.Cluster.Groups[e.groups[g.Slots[0].Node]]; !mayUse(j, group) {
		return fmt.Errorf("job %s: node %d has %s, the job asks for %s", j.ID, g.Slots[0].Node, group.Accelerator.Name, j.Accelerator)
	}
	return nil
}

// apply makes a checked target the present.
func (e *engine) apply(ctx context.Context, d *scheduler.Decision) error {
	for i := len(e.holding) - 1; i >= 0; i-- { // backwards: drop fills the gap from the end
		if j := e.holding[i]; j.stamp != e.round {
			grant := j.state.Grant
			j.state.Restarts++
			e.result.Jobs[j.record].Preemptions++
			e.drop(j)
			if e.Quirks.Urgent { // the wait of who is stopped counts from the next round on
				j.state.Since += e.Round
			}
			e.observe(Stopped, j.state.Job, grant, d.Why[j.state.Job.ID])
		}
	}
	for i, g := range d.Grants {
		if j := e.target[i]; !g.Same(j.state.Grant) {
			if err := e.start(ctx, j, g, d.Why[g.Job]); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop takes the devices of j away. j was advanced to now.
func (e *engine) drop(j *job) {
	e.held -= j.devices
	j.release(e.now)
	j.state.StartCost = e.startCost(j, j.last)
	last := len(e.holding) - 1
	e.holding[j.place] = e.holding[last]
	e.holding[j.place].place = j.place
	e.holding = e.holding[:last]
}

// start gives j the grant g, whatever it holds now, and charges its start cost.
func (e *engine) start(ctx context.Context, j *job, g *scheduler.Grant, why string) error {
	group := &e.Cluster.Groups[e.groups[g.Slots[0].Node]]
	stages, err := e.stages(ctx, j, g, group)
	if err != nil {
		return fmt.Errorf("sim: policy %s at %v: job %s (%s), plan %s on %s: %w",
			e.PolicyName, e.now, g.Job, j.state.Job.Model.Name, g.Plan, g.Shape.Devices, err)
	}
	event := Started
	if j.state.Grant != nil {
		event = Moved
		j.state.Restarts++
		e.drop(j)
	}
	j.place = len(e.holding)
	e.holding = append(e.holding, j)
	exact := j.hold(e.now, g, e.course(j, g, stages))
	done := e.noticed(exact, j.ends)
	if e.Quirks.LateEnds {
		j.ends = done
	}
	j.state.StartCost = e.startCost(j, nil)
	e.held += j.devices
	e.queue.push(jobDone(j, done))
	e.observe(event, j.state.Job, g, why)
	return nil
}

// stages asks the truth how fast j runs on g.
func (e *engine) stages(ctx context.Context, j *job, g *scheduler.Grant, group *spec.NodeGroup) ([]Stage, error) {
	stages := j.one[:]
	var err error
	if staged, ok := e.Truth.(Staged); ok {
		stages, err = staged.Stages(ctx, j.state.Job, g, group)
	} else {
		j.one[0].Until = math.Inf(1)
		j.one[0].Rate, err = e.Truth.StepsPerSec(ctx, j.state.Job, g, group)
	}
	if err == nil && len(stages) == 0 {
		err = errors.New("the truth says nothing")
	}
	for i := range stages {
		if rate := stages[i].Rate; err == nil && !finitePositive(rate) {
			err = fmt.Errorf("the truth says %g steps/s", rate)
		}
	}
	return stages, err
}

func jobDone(j *job, at time.Duration) event {
	return event{at: at, kind: completion, job: j, version: j.version}
}

// setWake lets the policy be asked at a time, in round mode when the round
// begins; 0 = only when something happens.
func (e *engine) setWake(at time.Duration) {
	at = e.roundFrom(at)
	e.wake++
	e.wakeAt = at
	if at > 0 {
		e.queue.push(event{at: at, kind: wakeUp, version: e.wake})
	}
}

// warn keeps each warning once, in the order they first appear.
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
	u := Usage{At: e.now, Held: e.held, Waiting: len(e.active) - len(e.holding) + e.outside}
	all := e.result.Usage
	if n := len(all); n > 0 && all[n-1].Held == u.Held && all[n-1].Waiting == u.Waiting {
		return
	}
	e.result.Usage = append(all, u)
}
