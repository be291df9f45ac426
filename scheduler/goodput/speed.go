package goodput

import (
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// errNotCovered marks queries outside of the tables.
var errNotCovered = perfmodel.ErrNotCovered

// timing is the time of a step with one micro-batch, in seconds.
type timing struct {
	step float64
	sync float64 // the part of step for the reduction of gradients
}

// blend is t at share 0 and u at share 1.
func (t timing) blend(u timing, share float64) timing {
	return timing{mix(t.step, u.step, share), mix(t.sync, u.sync, share)}
}

// speeds are the step times of an application on one type of device.
type speeds struct {
	what               string // for errors
	accelerator        string
	minLocal, maxLocal int                 // samples per device and micro-batch that were measured
	rings              map[string]*profile // measured placements, by ring
	placed             []spec.Shape        // shapes with a measured ring
	between            interpolator        // for all other shapes
	spread             []measurement       // rows with nodes and replicas only
}

// interpolator estimates step times of placements that were not measured, by nodes,
// replicas and samples per device. It returns false outside of the measured range.
type interpolator interface {
	at(nodes, replicas, local float64) (timing, bool)
}

// profile is step times by samples per device.
type profile struct {
	local []float64 // ascending
	times []timing
}

// at interpolates linearly. It returns false outside of the measured range.
func (p *profile) at(local float64) (timing, bool) {
	i, exact := slices.BinarySearch(p.local, local)
	switch {
	case exact:
		return p.times[i], true
	case i == 0 || i == len(p.local):
		return timing{}, false
	}
	return p.times[i-1].blend(p.times[i], (local-p.local[i-1])/(p.local[i]-p.local[i-1])), true
}

// at returns the step time on a shape: interpolated between its measured micro-batches,
// or between other placements if it was not measured.
func (s *speeds) at(shape spec.Shape, local int) (timing, error) {
	if p := s.placement(shape); p != nil {
		if t, ok := p.at(float64(local)); ok {
			return t, nil
		}
	} else if t, ok := s.between.at(float64(shape.Nodes()), float64(shape.Total()), float64(local)); ok && t.step > 0 {
		return t, nil
	}
	return timing{}, fmt.Errorf("goodput: %s: %d samples per device on %s are outside of the measured range: %w", s.what, local, shape, errNotCovered)
}

// placement returns the step times measured on a shape, nil if there are none.
func (s *speeds) placement(shape spec.Shape) *profile { return s.rings[ring(shape.PerNode())] }

// measured reports whether a step was measured, not interpolated.
func (s *speeds) measured(shape spec.Shape, local int) bool {
	p := s.placement(shape)
	return p != nil && slices.Contains(p.local, float64(local))
}

// ring names a placement by its devices per node in the order of the ring that reduces
// gradients. Rotations of a ring have the same name. The order of a shape is descending.
func ring(perNode []int) string {
	best := ""
	for i := range perNode {
		name := make([]byte, 0, len(perNode))
		for k := range perNode {
			n := perNode[(i+k)%len(perNode)]
			if n > math.MaxUint8 {
				return ""
			}
			name = append(name, byte(n))
		}
		if best == "" || string(name) < best {
			best = string(name)
		}
	}
	return best
}

// measurement is a row of a table of step times.
type measurement struct {
	perNode []int // nil if only nodes and replicas are known
	point
}
