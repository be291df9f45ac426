package scheduler

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Colocator is an Oracle, or somebody else, that knows how fast jobs run that
// share devices. It is safe for concurrent use.
type Colocator interface {
	// Beside returns the throughput of a, in samples/s, while b runs on the same
	// devices. Its error wraps perfmodel.ErrNotCovered where that is not known, or is
	// known not to work.
	Beside(a, b spec.Config) (float64, error)
}

// PairLearner is a Colocator that learns from jobs that ran.
type PairLearner interface {
	Colocator
	// Ran says that a and b ran on the same devices, and reports whether that is news.
	Ran(a, b spec.Config) (learnt bool)
}

// Stays reports whether g and o give the same job the same plan, shape and
// devices, in whatever company.
func (g *Grant) Stays(o *Grant) bool {
	if g == o {
		return true
	}
	return g != nil && o != nil && g.Job == o.Job && g.Shape == o.Shape && g.Elastic == o.Elastic &&
		g.trains() == o.trains() && slices.Equal(g.Slots, o.Slots)
}

// Beside returns a grant like g whose devices with shares; "" = nobody does.
func (g *Grant) Beside(with spec.JobID) *Grant {
	out := *g
	out.With = with
	return &out
}

// Counts returns what an inventory has to give for g, so that devices two jobs
// share count once: all of its slots, or of a grant that is shared with a job of
// lesser ID what it needs of the host alone.
func (g *Grant) Counts() []Slot {
	if g.Counted() {
		return g.Slots
	}
	var out []Slot
	for _, s := range g.Slots {
		if s.Host != (spec.Host{}) {
			out = append(out, Slot{Node: s.Node, Host: s.Host})
		}
	}
	return out
}

// Counted reports whether the devices of g count as held by it: they do of one of
// two jobs that share them.
func (g *Grant) Counted() bool { return g.With == "" || g.Job < g.With }

// Shares reports whether g and o share all their devices with each other; false
// if either is nil.
func (g *Grant) Shares(o *Grant) bool {
	return g != nil && o != nil && g.Job != o.Job && g.Job == o.With && o.Job == g.With &&
		slices.EqualFunc(g.Slots, o.Slots, func(a, b Slot) bool { return a.Node == b.Node && a.Devices == b.Devices })
}
