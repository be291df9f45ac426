package planner

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Curve returns the sensitivity curve of r: for 1..Devices devices the best
// choice with at most that many. It is the envelope of Zhang et al., "Rubick:
// Exploiting Job Reconfigurability for Deep Learning Cluster Scheduling", MLSys
// 2025: a count whose own best plan is no faster (in its artifact, not 1 %
// faster) keeps the choice of the count before. Counts before the first
// feasible one have no point; if there is none at all, the error wraps
// ErrInfeasible.
//
// A fixed Shape stands for its number of devices, of whose CPUs and host memory
// every count has its share. Every count is laid out on nodes of PerNode
// devices; a Measured space uses each measured shape instead. The points are
// shared by all callers: not to be modified.
func (pl *Planner) Curve(ctx context.Context, r Request) (Curve, error) {
	if r.Shape.Devices != "" {
		r.Devices, r.PerNode = r.Shape.Total(), r.Shape.Most()
		r.Shape.Devices = ""
	}
	r, err := r.normal()
	if err != nil {
		return Curve{}, err
	}
	key := keyOf(r)
	if c, ok := pl.curves.get(key); ok {
		return c, nil
	}
	out := Curve{Request: r}
	var top answer
	bar := 0.0
	for n := 1; n <= r.Devices; n++ {
		at := r
		at.Devices, at.MinDevices, at.Shape = n, 0, share(r.Shape, n, r.Devices)
		a, err := pl.best(ctx, &at, bar, pl.find)
		if err != nil {
			return Curve{}, err
		}
		if a.ok && (!top.ok || r.value(&a.choice) > r.value(&top.choice)) {
			top, bar = a, r.value(&a.choice)
		}
		if top.ok {
			out.Points = append(out.Points, CurvePoint{Devices: n, Choice: top.choice})
		}
	}
	if !top.ok {
		return Curve{}, pl.infeasible(ctx, r)
	}
	pl.curves.put(key, out)
	return out, nil
}

// share returns what n of the devices of s have of its CPUs and host memory.
// 0 stays not recorded, and nothing else becomes that.
func share(s spec.Shape, n, devices int) spec.Shape {
	if s.CPUs > 0 {
		s.CPUs = max(s.CPUs*n/devices, 1)
	}
	s.HostBytes *= float64(n) / float64(devices)
	return s
}
