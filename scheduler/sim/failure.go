package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Failures says when nodes are down.
type Failures interface {
	// Outages returns a function that gives the outages of a node one after the
	// other, each beginning after the end of the one before, false after the last.
	Outages(node int) func() (Outage, bool)
}

// Outage is a time at which a node is down: from Down up to but without Up.
type Outage struct{ Down, Up time.Duration }

// Lifetimes are nodes that go down after exponentially distributed times.
type Lifetimes struct {
	Nodes []Lifetime // by node
	Seed  uint64
}

// Lifetime is how long a node is up and down on average, 0 = always up.
type Lifetime struct{ Up, Down time.Duration }

// NewLifetimes returns the lifetimes of a cluster, of gives that of a group.
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

// Outages draws those of a node, which follow from the seed and its number.
func (l Lifetimes) Outages(node int) func() (Outage, bool) {
	if node >= len(l.Nodes) || l.Nodes[node] == (Lifetime{}) {
		return func() (Outage, bool) { return Outage{}, false }
	}
	life, rng, up := l.Nodes[node], stream(l.Seed, fmt.Sprintf("failures/%d", node)), time.Duration(0)
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

// OutageTable are outages that are known, by node: ascending, none before the end
// of the one before.
type OutageTable map[int][]Outage

// Outages returns those of a node, one after the other.
func (t OutageTable) Outages(node int) func() (Outage, bool) {
	left := t[node]
	return func() (o Outage, ok bool) {
		if len(left) > 0 {
			o, left, ok = left[0], left[1:], true
		}
		return o, ok
	}
}
