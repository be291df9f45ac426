package planner

import (
	"context"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Curve returns the sensitivity curve of r: the best choice with at most n
// devices, for n in 1..Devices. It is the envelope of Zhang et al., "Rubick:
// Exploiting Job Reconfigurability for Deep Learning Cluster Scheduling", MLSys
// 2025: where the best plan on n devices is no faster (in its artifact, not 1 %
// faster), n keeps the choice of n-1. Counts before the first feasible one have
// no point. Without any feasible count the error wraps ErrInfeasible.
//
// A fixed Shape stands for its number of devices; each count has its share of the
// shape's CPUs and host memory. Every count is laid out on nodes of PerNode
// devices; a Measured space uses each measured shape instead. All callers share
// the points and must not modify them.
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
	minimum := 0.0
	for n := 1; n <= r.Devices; n++ {
		at := r
		at.Devices, at.MinDevices, at.Shape = n, 0, share(r.Shape, n, r.Devices)
		a, err := pl.best(ctx, &at, minimum, pl.find)
		if err != nil {
			return Curve{}, err
		}
		if a.ok && (!top.ok || r.value(&a.choice) > r.value(&top.choice)) {
			top, minimum = a, r.value(&a.choice)
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

// share returns the CPUs and host memory of n of the devices of s. 0 means not
// recorded and stays 0; other counts of CPUs stay at least 1.
func share(s spec.Shape, n, devices int) spec.Shape {
	if s.CPUs > 0 {
		s.CPUs = max(s.CPUs*n/devices, 1)
	}
	s.HostBytes *= float64(n) / float64(devices)
	return s
}
