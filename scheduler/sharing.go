package scheduler

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Colocator predicts the speeds of jobs that share devices. It is safe for concurrent use.
type Colocator interface {
	// Beside returns the throughput of a, in samples/s, while b runs on the same devices.
	// The error wraps perfmodel.ErrNotCovered if it is unknown, or if the pair cannot run.
	Beside(a, b spec.Config) (float64, error)
}

// PairLearner is a Colocator that learns from pairs that ran. It belongs to one run.
type PairLearner interface {
	Colocator
	// Ran records that a and b ran on the same devices, and reports whether that changes
	// an answer.
	Ran(a, b spec.Config) (learnt bool)
}

// Stays reports whether g and o give the same job the same plan, shape and devices, with
// any colocated job.
func (g *Grant) Stays(o *Grant) bool {
	if g == o {
		return true
	}
	return g != nil && o != nil && g.Job == o.Job && g.Shape == o.Shape && g.Elastic == o.Elastic &&
		g.trains() == o.trains() && slices.Equal(g.Slots, o.Slots)
}

// Beside returns a copy of g that shares its devices with a job; "" = none.
func (g *Grant) Beside(with spec.JobID) *Grant {
	out := *g
	out.With = with
	return &out
}

// Counts returns the slots that an inventory gives for g, so that shared devices count
// once: all slots, or only the needs of the host if g is shared with a job of lesser ID.
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

// Counted reports whether the devices of g count as held by it: they count for one of two
// jobs that share them.
func (g *Grant) Counted() bool { return g.With == "" || g.Job < g.With }

// Shares reports whether g and o share all their devices with each other; false if either
// is nil.
func (g *Grant) Shares(o *Grant) bool {
	return g != nil && o != nil && g.Job != o.Job && g.Job == o.With && o.Job == g.With &&
		slices.EqualFunc(g.Slots, o.Slots, func(a, b Slot) bool { return a.Node == b.Node && a.Devices == b.Devices })
}
