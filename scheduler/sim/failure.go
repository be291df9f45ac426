package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler"
)

// Failures are the outages of nodes.
type Failures interface {
	// Outages returns an iterator over the outages of a node: ascending, each begins
	// after the end of the one before, false after the last.
	Outages(node int) func() (Outage, bool)
}

// Outage is a time at which a node is down: from Down up to, but not including, Up.
type Outage struct{ Down, Up time.Duration }

// Lifetimes are nodes with exponentially distributed times between failures and until repair.
type Lifetimes struct {
	Nodes []Lifetime // by node
	Seed  uint64
}

// Lifetime is the mean up and down time of a node, 0 = always up.
type Lifetime struct{ Up, Down time.Duration }

// NewLifetimes returns the lifetimes of a cluster; of returns that of a group.
func NewLifetimes(c spec.Cluster, seed uint64, of func(*spec.NodeGroup) Lifetime) (Lifetimes, error) {
	l := Lifetimes{Seed: seed}
	for i := range c.Groups {
		g := &c.Groups[i]
		life := of(g)
		if life != (Lifetime{}) && (life.Up < time.Second || life.Down < time.Second) {
			return l, fmt.Errorf("sim: nodes of %s are up for %v and down for %v, want at least 1s each", g.Accelerator.Name, life.Up, life.Down)
		}
		for range g.Count {
			l.Nodes = append(l.Nodes, life)
		}
	}
	return l, nil
}

// Outages draws the outages of a node from the seed and its number.
func (l Lifetimes) Outages(node int) func() (Outage, bool) {
	if node >= len(l.Nodes) || l.Nodes[node] == (Lifetime{}) {
		return func() (Outage, bool) { return Outage{}, false }
	}
	life, rng, up := l.Nodes[node], stats.Stream(l.Seed, fmt.Sprintf("failures/%d", node)), time.Duration(0)
	return func() (o Outage, ok bool) {
		o, ok = life.next(rng, up)
		up = o.Up
		return o, ok
	}
}

// next draws the outage after the time up.
func (l Lifetime) next(rng *rand.Rand, up time.Duration) (o Outage, ok bool) {
	if up >= never {
		return o, false
	}
	o.Down = min(up+exponential(rng, l.Up), never)
	o.Up = min(o.Down+exponential(rng, l.Down), never)
	return o, o.Down < never
}

// OutageTable are known outages by node: ascending and disjoint.
type OutageTable map[int][]Outage

// Outages returns the known outages of a node.
func (t OutageTable) Outages(node int) func() (Outage, bool) {
	left := t[node]
	return func() (o Outage, ok bool) {
		if len(left) > 0 {
			o, left, ok = left[0], left[1:], true
		}
		return o, ok
	}
}

// node is the state of a node that may fail.
type node struct {
	outages func() (Outage, bool)
	up      time.Duration // when it will be repaired
	down    bool
}

// expectFailures plans the first failure of every node.
func (e *engine) expectFailures() {
	e.nodes = make([]node, e.Cluster.Nodes())
	for i := range e.nodes {
		e.nodes[i].outages = e.Failures.Outages(i)
		e.expectFailure(i)
	}
}

// expectFailure plans the next failure of a node that is up. It skips those before the
// run began.
func (e *engine) expectFailure(i int) {
	for {
		o, ok := e.nodes[i].outages()
		switch {
		case !ok:
			return
		case o.Down >= e.now || o.Up > e.now:
			e.nodes[i].up = o.Up
			e.expect(max(o.Down, e.now), i)
			return
		}
	}
}

// expect plans that a node goes down or up at a time within the horizon.
func (e *engine) expect(at time.Duration, node int) {
	if at <= e.Horizon {
		e.queue.add(event{at: at, kind: outage, node: node})
	}
}

// outages takes nodes down and up as planned for this instant.
func (e *engine) outages() {
	for any := false; ; any = true {
		ev, ok := e.due(outage)
		if !ok {
			return
		}
		if !any {
			e.idleOutages++
			e.idle = min(e.idle, maxIdle-wakesAfterOutage)
		}
		if n := &e.nodes[ev.node]; n.down {
			n.down = false
			e.ledger.NodeUp(ev.node)
			e.emit(Event{At: e.now, Kind: NodeUp, Node: ev.node})
			e.expectFailure(ev.node)
		} else {
			n.down = true
			e.emit(Event{At: e.now, Kind: NodeDown, Node: ev.node})
			e.failOn(ev.node)
			e.ledger.NodeDown(ev.node)
			e.expect(n.up, ev.node)
		}
	}
}

// failOn fails all jobs that hold devices of a node, in the order they entered.
func (e *engine) failOn(node int) {
	var jobs []*job
	for _, j := range e.holding {
		if slices.ContainsFunc(j.state.Grant.Slots, func(s scheduler.Slot) bool { return s.Node == node }) {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.state.Order, b.state.Order) })
	for _, j := range jobs {
		grant := j.state.Grant
		e.fail(j)
		e.emit(Event{At: e.now, Kind: Failed, Job: j.state.Job, Node: node, Grant: grant})
	}
}

// fail takes away the devices of j and its unsaved progress.
func (e *engine) fail(j *job) {
	j.advance(e.now)
	saved, since := j.progress.saved(e.now)
	saved = min(saved, j.work)
	if saved > j.kept {
		j.kept, e.idleOutages = saved, 0
	}
	r := &e.result.Jobs[j.state.Order]
	r.LostSteps += j.state.Done - saved
	r.LostSec += j.receivedSince(since, e.now)
	r.Failures++
	j.state.Failures++
	j.state.Done = saved
	j.updateRemaining()
	j.failed = true
	e.ledger.Lose(&j.state)
	e.drop(j)
}
