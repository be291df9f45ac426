package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler"
)

// Speeds are the speeds of nodes relative to the truth's, over time. A gang runs at the
// speed of its slowest node. Policies do not see them.
type Speeds interface {
	// Node returns the speed of a node as a function of time: a factor above 0 and the
	// time until which it holds, later than t. Calls may go back in time. Only one run
	// uses the function.
	Node(node int) func(t time.Duration) (speed float64, until time.Duration)
	// Fastest returns an upper bound of the speeds of nodes.
	Fastest(nodes int) float64
}

// Variation are permanent differences of nodes, and stragglers: nodes with slow spells.
// The zero value is none.
type Variation struct {
	// Sigma is the standard deviation of ln(speed) of a node, drawn once from a
	// log-normal distribution of mean 1; 0..1.
	Sigma float64
	// The times between two slow spells of a node and the lengths of spells are
	// exponentially distributed, with means Every and Last. A spell makes the node Slow
	// times as fast, in (0, 1). Every 0 = no spells.
	Every, Last time.Duration
	Slow        float64
	Seed        uint64
}

// maxSigma bounds Variation.Sigma: beyond, nodes of one kind differ tenfold.
const maxSigma = 1

// Validate reports figures out of range.
func (v Variation) Validate() error {
	switch {
	case !(v.Sigma >= 0 && v.Sigma <= maxSigma):
		return fmt.Errorf("sim: node speeds with a sigma of %g, want 0 to %d", v.Sigma, maxSigma)
	case v.Every < 0 || v.Every > 0 && v.Every < time.Second:
		return fmt.Errorf("sim: slow spells every %v, want at least 1s, or 0 for none", v.Every)
	case v.Every > 0 && v.Last < time.Second:
		return fmt.Errorf("sim: slow spells of %v, want at least 1s", v.Last)
	case v.Every > 0 && !(v.Slow > 0 && v.Slow < 1):
		return fmt.Errorf("sim: slow spells of %g times the speed, want above 0 and below 1", v.Slow)
	}
	return nil
}

// Node returns the speed of a node, drawn from the seed and its number.
func (v Variation) Node(node int) func(time.Duration) (float64, time.Duration) {
	n := &nodeSpeed{v: v, usual: v.usual(node), spells: stats.Stream(v.Seed, fmt.Sprintf("slow/%d", node))}
	return n.at
}

// usual returns the speed of a node outside of slow spells.
func (v Variation) usual(node int) float64 {
	z := stats.Stream(v.Seed, fmt.Sprintf("speed/%d", node)).NormFloat64()
	return math.Exp(v.Sigma*z - v.Sigma*v.Sigma/2)
}

// Fastest returns the speed of the fastest node.
func (v Variation) Fastest(nodes int) float64 {
	most := 0.0
	for i := range nodes {
		most = max(most, v.usual(i))
	}
	return most
}

// nodeSpeed is the speed of a node over time. Changes are drawn on demand.
type nodeSpeed struct {
	v       Variation
	usual   float64
	spells  *rand.Rand
	changes []time.Duration // into a slow spell, out of it, and so on; ascending
}

func (n *nodeSpeed) at(t time.Duration) (float64, time.Duration) {
	if n.v.Every == 0 || t >= never {
		return n.usual, math.MaxInt64
	}
	for len(n.changes) == 0 || n.changes[len(n.changes)-1] <= t {
		n.draw()
	}
	i, now := slices.BinarySearch(n.changes, t)
	if now {
		i++
	}
	if i%2 == 1 {
		return n.usual * n.v.Slow, n.changes[i]
	}
	return n.usual, n.changes[i]
}

// draw adds a change.
func (n *nodeSpeed) draw() {
	last, mean := time.Duration(0), n.v.Every
	if k := len(n.changes); k > 0 {
		last = n.changes[k-1]
		if k%2 == 1 {
			mean = n.v.Last
		}
	}
	n.changes = append(n.changes, min(last+exponential(n.spells, mean), never))
}

// exponential draws a time with a mean, within 1 ns..never.
func exponential(rng *rand.Rand, mean time.Duration) time.Duration {
	return seconds(rng.ExpFloat64() * mean.Seconds())
}

// gang returns the speed of the nodes of g together, nil without Config.Speeds.
func (e *engine) gang(g *scheduler.Grant) gangSpeed {
	if e.Speeds == nil {
		return nil
	}
	nodes := make([]func(time.Duration) (float64, time.Duration), len(g.Slots))
	for i, s := range g.Slots {
		if e.speeds[s.Node] == nil {
			e.speeds[s.Node] = e.Speeds.Node(s.Node)
		}
		nodes[i] = e.speeds[s.Node]
	}
	return func(t time.Duration) (float64, time.Duration) {
		slowest, until := math.Inf(1), time.Duration(math.MaxInt64)
		for _, at := range nodes {
			v, to := at(t)
			slowest, until = min(slowest, v), min(until, to)
		}
		return slowest, until
	}
}
