package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Failures are the outages of nodes: failures, maintenance windows, or spot capacity that its
// provider takes back.
type Failures interface {
	// Outages returns an iterator over the outages of a node: ascending, each begins
	// after the end of the one before, false after the last.
	Outages(node int) func() (Outage, bool)
}

// Outage is a time at which a node is down: from Down up to, but not including, Up.
type Outage struct {
	Down, Up time.Duration
	// Notice is how long before Down policies know of the outage; Planned = always. A job on the
	// node saves its progress if its checkpoint takes no longer. 0 = no notice, nothing is saved.
	Notice time.Duration
}

// Planned is the notice of an outage that is known from the start of the run.
const Planned = never

// saves reports whether a job that writes its checkpoint in a time keeps its progress.
func (o *Outage) saves(write time.Duration) bool { return o.Notice > 0 && o.Notice >= write }

// Lifetimes are nodes with exponentially distributed times between failures and until repair.
type Lifetimes struct {
	Nodes  []Lifetime // by node
	Seed   uint64
	Stream string // name of the random stream, "" = failures
}

// Lifetime is the mean up and down time of a node, 0 = always up, and the notice of its outages.
type Lifetime struct{ Up, Down, Notice time.Duration }

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
	life, rng, up := l.Nodes[node], stats.Stream(l.Seed, fmt.Sprintf("%s/%d", cmp.Or(l.Stream, "failures"), node)), time.Duration(0)
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
	o.Up, o.Notice = min(o.Down+exponential(rng, l.Down), never), l.Notice
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

// fail takes away the devices of j and its unsaved progress.
func (e *engine) fail(j *job) {
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
