package planner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// HostRegular is an optional interface of predictors that are monotone in the host.
// The planner computes their surfaces several times faster.
type HostRegular interface {
	// HostRegular returns true if predictions of plans without offload do not
	// depend on the Shape's CPUs and HostBytes, and predictions of other plans are
	// never slower with more CPUs. The answer must not change.
	HostRegular() bool
}

// Machine is a type of node.
type Machine struct {
	Accelerator   spec.Accelerator
	Link          spec.Link
	PerNode       int     // devices of a node, 0 = 8
	NodeHostBytes float64 // host memory of a node, 0 = not limited
}

// Axes are the resources a Surface varies besides the number of devices. An empty
// axis has one value, the request's.
type Axes struct {
	Machines  []Machine
	InterBps  []float64 // network bandwidth of a node, bytes/s
	HostBytes []float64 // host memory per device, bytes, ascending
	CPUs      []int     // CPU threads per device, ascending
}

// Surface is the throughput of a model over all resources a scheduler can grant.
// Safe for concurrent use; callers must not modify it.
type Surface struct {
	Request Request
	Axes    Axes    // with the request's value where an axis was empty
	points  []int32 // indexes of choices, by index; 0 = nothing fits
	choices []Choice
}

// Surface returns the best choices of r on 1..Devices devices for all values of
// the axes. Each point is the best choice with at most that many devices, CPUs and
// host memory, so that throughput never falls along these three, as on a Curve.
// Points where nothing fits have Throughput 0. When nothing fits at any point the
// error wraps ErrInfeasible.
//
// r.Shape must not name devices. Its CPUs and HostBytes, of all Devices together,
// are the values of empty axes.
func (pl *Planner) Surface(ctx context.Context, r Request, axes Axes) (*Surface, error) {
	r, err := r.normal()
	if err != nil {
		return nil, err
	}
	if r.Shape.Devices != "" {
		return nil, fmt.Errorf("planner: a surface over devices cannot have the shape %s", r.Shape.Devices)
	}
	if axes, err = axes.normal(&r); err != nil {
		return nil, err
	}
	key := surfaceKeyOf(r, axes)
	if s, ok := pl.surfaces.get(key); ok {
		return s, nil
	}
	s := &Surface{Request: r, Axes: axes, choices: make([]Choice, 1)}
	s.points = make([]int32, len(axes.Machines)*len(axes.InterBps)*len(axes.HostBytes)*len(axes.CPUs)*r.Devices)
	regular, _ := pl.p.(HostRegular)
	w := surfaceBuilder{pl: pl, s: s, regular: regular != nil && regular.HostRegular()}
	if err := w.fill(ctx); err != nil {
		return nil, err
	}
	if len(s.choices) == 1 {
		last := w.at(len(axes.Machines)-1, len(axes.InterBps)-1, len(axes.HostBytes)-1, len(axes.CPUs)-1, r.Devices)
		return nil, pl.infeasible(ctx, last)
	}
	s.choices = slices.Clip(s.choices)
	pl.surfaces.put(key, s)
	return s, nil
}

// surfaceKey is a comparable request for a Surface.
type surfaceKey struct {
	requestKey
	axes string
}

func surfaceKeyOf(r Request, axes Axes) surfaceKey {
	return surfaceKey{keyOf(r), fmt.Sprintf("%#v", axes)}
}

// normal checks the axes and fills in empty ones.
func (a Axes) normal(r *Request) (Axes, error) {
	if len(a.Machines) == 0 {
		a.Machines = []Machine{{r.Accelerator, r.Link, r.PerNode, r.NodeHostBytes}}
	}
	if len(a.CPUs) == 0 {
		a.CPUs = []int{r.Shape.CPUs / r.Devices}
	}
	if len(a.HostBytes) == 0 {
		a.HostBytes = []float64{r.Shape.HostBytes / float64(r.Devices)}
	}
	if len(a.InterBps) == 0 {
		a.InterBps = []float64{0}
	}
	if !slices.IsSorted(a.CPUs) || a.CPUs[0] < 0 {
		return a, fmt.Errorf("planner: CPUs per device %v are not ascending from 0 or more", a.CPUs)
	}
	if !slices.IsSorted(a.HostBytes) || !(a.HostBytes[0] >= 0) {
		return a, fmt.Errorf("planner: host bytes per device %v are not ascending from 0 or more", a.HostBytes)
	}
	for _, b := range a.InterBps {
		if !(b >= 0) || math.IsInf(b, 0) {
			return a, fmt.Errorf("planner: network bandwidth %g bytes/s, want 0 (the machine's) or more", b)
		}
	}
	return a, nil
}

// index returns the index in points of n devices; the other arguments are indexes
// of the axes.
func (s *Surface) index(machine, inter, host, cpu, n int) int {
	i := machine*len(s.Axes.InterBps) + inter
	i = i*len(s.Axes.HostBytes) + host
	i = i*len(s.Axes.CPUs) + cpu
	return i*s.Request.Devices + n - 1
}

// At returns the best choice with at most n devices, in 1..Request.Devices; the
// other arguments are indexes of the axes. ok is false where nothing fits.
func (s *Surface) At(machine, inter, host, cpu, n int) (c Choice, ok bool) {
	c = s.choices[s.points[s.index(machine, inter, host, cpu, n)]]
	return c, c.Fits
}

// Marginal returns the throughput the n-th device adds, samples/s.
func (s *Surface) Marginal(machine, inter, host, cpu, n int) float64 {
	with, _ := s.At(machine, inter, host, cpu, n)
	if n == 1 {
		return with.Prediction.Throughput
	}
	without, _ := s.At(machine, inter, host, cpu, n-1)
	return with.Prediction.Throughput - without.Prediction.Throughput
}

// surfaceBuilder fills a Surface.
type surfaceBuilder struct {
	pl      *Planner
	s       *Surface
	regular bool
	r       Request // for the present point
}

func (w *surfaceBuilder) fill(ctx context.Context) error {
	axes := &w.s.Axes
	for m := range axes.Machines {
		for b := range axes.InterBps {
			for n := 1; n <= w.s.Request.Devices; n++ {
				if err := w.hosts(ctx, m, b, n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hosts fills the points of all host memories and CPUs for n devices. It searches
// only for choices better than the points with fewer resources.
func (w *surfaceBuilder) hosts(ctx context.Context, m, b, n int) error {
	axes := &w.s.Axes
	hosts, cpus := len(axes.HostBytes)-1, len(axes.CPUs)-1
	if !w.regular || hosts+cpus == 0 {
		return w.each(m, b, n, func(r *Request, minimum float64) (answer, error) { return w.find(ctx, r, minimum) })
	}
	// Plans without offload have the same throughput on every host.
	without := w.at(m, b, 0, 0, n)
	without.offload = noOffload
	without.Shape.CPUs, without.Shape.HostBytes, without.NodeHostBytes = 0, 0, 0
	plain, err := w.find(ctx, &without, w.valueAt(w.s.best(m, b, 0, 0, n)))
	if err != nil {
		return err
	}
	// Plans with offload are no faster on smaller hosts than on the largest.
	with := w.at(m, b, hosts, cpus, n)
	with.offload = onlyOffload
	most, err := w.find(ctx, &with, max(w.valueAt(w.s.best(m, b, 0, 0, n)), w.value(&plain)))
	if err != nil {
		return err
	}
	return w.each(m, b, n, func(r *Request, minimum float64) (answer, error) {
		if most.ok {
			r.offload = onlyOffload
			off, err := w.find(ctx, r, max(minimum, w.value(&plain)))
			if err != nil || w.value(&off) > w.value(&plain) {
				return off, err
			}
		}
		a := plain
		a.choice.Config.Shape.CPUs, a.choice.Config.Shape.HostBytes = r.Shape.CPUs, r.Shape.HostBytes
		return a, nil
	})
}

// find returns the best choice, no answer where the predictor does not cover r.
func (w *surfaceBuilder) find(ctx context.Context, r *Request, minimum float64) (answer, error) {
	a, err := w.pl.best(ctx, r, minimum, w.pl.find)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return answer{}, nil
	}
	return a, err
}

// value returns the value of an answer, 0 for none.
func (w *surfaceBuilder) value(a *answer) float64 {
	if !a.ok {
		return 0
	}
	return w.s.Request.value(&a.choice)
}

// valueAt returns the value of choices[place], 0 for place 0.
func (w *surfaceBuilder) valueAt(place int32) float64 {
	if place == 0 {
		return 0
	}
	return w.s.Request.value(&w.s.choices[place])
}

// each calls find for every host memory and number of CPUs, and keeps the point
// with fewer resources where that is no worse.
func (w *surfaceBuilder) each(m, b, n int, find func(r *Request, minimum float64) (answer, error)) error {
	s := w.s
	for h := range s.Axes.HostBytes {
		for c := range s.Axes.CPUs {
			w.r = w.at(m, b, h, c, n)
			less := s.best(m, b, h, c, n)
			a, err := find(&w.r, w.valueAt(less))
			if err != nil {
				return err
			}
			s.points[s.index(m, b, h, c, n)] = s.keep(&a, less)
		}
	}
	return nil
}

// best returns the index in choices of the best neighbour with one step less of one
// resource.
func (s *Surface) best(m, b, h, c, n int) int32 {
	top := int32(0)
	for _, less := range [][3]int{{h, c, n - 1}, {h, c - 1, n}, {h - 1, c, n}} {
		if min(less[0], less[1]) < 0 || less[2] < 1 {
			continue
		}
		if i := s.points[s.index(m, b, less[0], less[1], less[2])]; s.better(&s.choices[i], &s.choices[top]) {
			top = i
		}
	}
	return top
}

// better reports whether a has a higher value than b. A choice that does not fit
// has none.
func (s *Surface) better(a, b *Choice) bool {
	return a.Fits && (!b.Fits || s.Request.value(a) > s.Request.value(b))
}

// keep returns the index in choices of an answer, or less where that is no worse.
func (s *Surface) keep(a *answer, less int32) int32 {
	if !a.ok || !s.better(&a.choice, &s.choices[less]) {
		return less
	}
	s.choices = append(s.choices, a.choice)
	return int32(len(s.choices) - 1)
}

// at returns the request of one point.
func (w *surfaceBuilder) at(m, b, h, c, n int) Request {
	r, axes := w.s.Request, &w.s.Axes
	r.Devices, r.MinDevices = n, 0
	machine := &axes.Machines[m]
	r.Accelerator, r.Link, r.PerNode, r.NodeHostBytes = machine.Accelerator, machine.Link, machine.PerNode, machine.NodeHostBytes
	if r.PerNode == 0 {
		r.PerNode = 8
	}
	if v := axes.InterBps[b]; v > 0 {
		r.Link.InterBps = v
	}
	r.Shape.CPUs, r.Shape.HostBytes = axes.CPUs[c]*n, axes.HostBytes[h]*float64(n)
	return r
}
