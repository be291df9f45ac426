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

// HostRegular is an optional interface of predictors that treat hosts as physics
// does. When it returns true, predictions of plans that offload nothing do not
// depend on the Shape's CPUs and HostBytes, and those of other plans are never
// slower with more CPUs. Surfaces of such predictors are found several times
// faster.
type HostRegular interface{ HostRegular() bool }

// Machine is one type of node devices come in.
type Machine struct {
	Accelerator   spec.Accelerator
	Link          spec.Link
	PerNode       int     // devices of a node, 0 = 8
	NodeHostBytes float64 // host memory of a node, 0 = not limited
}

// Axes are what a Surface varies beside the number of devices. An empty axis has
// one value, the request's.
type Axes struct {
	Machines  []Machine
	InterBps  []float64 // network bandwidth of a node, bytes/s
	HostBytes []float64 // host memory per device, bytes, ascending
	CPUs      []int     // CPU threads per device, ascending
}

// Surface is the throughput of a model against everything a scheduler can give
// it. Safe for concurrent use; not to be modified.
type Surface struct {
	Request Request
	Axes    Axes    // with the request's value where an axis was empty
	points  []int32 // by index, places in choices; 0 = nothing fits
	choices []Choice
}

// Surface returns the best choices of r on 1..Devices devices for all values of
// the axes. As on a Curve, a job may leave devices, CPUs and host memory unused, so
// that more of them never means less: each point is the best with at most that
// much of the three. Where even the fastest plan does not fit, its Throughput is
// 0. When no point has a plan that fits the error wraps ErrInfeasible.
//
// r.Shape must not name devices; its CPUs and HostBytes, as those of Devices
// devices, stand for the axes that are empty.
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
	w := surfaceWalk{pl: pl, s: s, regular: regular != nil && regular.HostRegular()}
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

// surfaceKey is what a Surface was asked for, by content.
type surfaceKey struct {
	requestKey
	axes string
}

func surfaceKeyOf(r Request, axes Axes) surfaceKey {
	return surfaceKey{keyOf(r), fmt.Sprintf("%#v", axes)}
}

// normal fills in empty axes and checks the others.
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

// index returns where the point for n devices is among points; the other
// arguments are places on the axes.
func (s *Surface) index(machine, inter, host, cpu, n int) int {
	i := machine*len(s.Axes.InterBps) + inter
	i = i*len(s.Axes.HostBytes) + host
	i = i*len(s.Axes.CPUs) + cpu
	return i*s.Request.Devices + n - 1
}

// At returns the best choice with at most n devices, in 1..Request.Devices; the
// other arguments are places on the axes. ok is false where nothing fits.
func (s *Surface) At(machine, inter, host, cpu, n int) (c Choice, ok bool) {
	c = s.choices[s.points[s.index(machine, inter, host, cpu, n)]]
	return c, c.Fits
}

// Marginal returns what the n-th device adds to the throughput, samples/s.
func (s *Surface) Marginal(machine, inter, host, cpu, n int) float64 {
	with, _ := s.At(machine, inter, host, cpu, n)
	if n == 1 {
		return with.Prediction.Throughput
	}
	without, _ := s.At(machine, inter, host, cpu, n-1)
	return with.Prediction.Throughput - without.Prediction.Throughput
}

// surfaceWalk fills a Surface.
type surfaceWalk struct {
	pl      *Planner
	s       *Surface
	regular bool
	r       Request // in work
}

func (w *surfaceWalk) fill(ctx context.Context) error {
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

// hosts fills in all host memories and CPUs for n devices. Whatever is not better
// than a point with less of something is not looked for.
func (w *surfaceWalk) hosts(ctx context.Context, m, b, n int) error {
	axes := &w.s.Axes
	hosts, cpus := len(axes.HostBytes)-1, len(axes.CPUs)-1
	if !w.regular || hosts+cpus == 0 {
		return w.each(m, b, n, func(r *Request, bar float64) (answer, error) { return w.ask(ctx, r, bar) })
	}
	// Plans that offload nothing are the same on every host.
	without := w.at(m, b, 0, 0, n)
	without.offload = noOffload
	without.Shape.CPUs, without.Shape.HostBytes, without.NodeHostBytes = 0, 0, 0
	plain, err := w.ask(ctx, &without, w.bar(w.s.best(m, b, 0, 0, n)))
	if err != nil {
		return err
	}
	// Others are no better on a lesser host than on the largest.
	with := w.at(m, b, hosts, cpus, n)
	with.offload = onlyOffload
	most, err := w.ask(ctx, &with, max(w.bar(w.s.best(m, b, 0, 0, n)), w.worth(&plain)))
	if err != nil {
		return err
	}
	return w.each(m, b, n, func(r *Request, bar float64) (answer, error) {
		if most.ok {
			r.offload = onlyOffload
			off, err := w.ask(ctx, r, max(bar, w.worth(&plain)))
			if err != nil || w.worth(&off) > w.worth(&plain) {
				return off, err
			}
		}
		a := plain
		a.choice.Config.Shape.CPUs, a.choice.Config.Shape.HostBytes = r.Shape.CPUs, r.Shape.HostBytes
		return a, nil
	})
}

// ask searches; what the predictor does not cover has no answer.
func (w *surfaceWalk) ask(ctx context.Context, r *Request, bar float64) (answer, error) {
	a, err := w.pl.best(ctx, r, bar, w.pl.find)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return answer{}, nil
	}
	return a, err
}

// worth is that of an answer, 0 for none.
func (w *surfaceWalk) worth(a *answer) float64 {
	if !a.ok {
		return 0
	}
	return w.s.Request.value(&a.choice)
}

// bar is the worth of a place in choices, 0 for none.
func (w *surfaceWalk) bar(place int32) float64 {
	if place == 0 {
		return 0
	}
	return w.s.Request.value(&w.s.choices[place])
}

// each asks for every host memory and number of CPUs, and takes the point with
// less of something where that is no worse.
func (w *surfaceWalk) each(m, b, n int, ask func(r *Request, bar float64) (answer, error)) error {
	s := w.s
	for h := range s.Axes.HostBytes {
		for c := range s.Axes.CPUs {
			w.r = w.at(m, b, h, c, n)
			less := s.best(m, b, h, c, n)
			a, err := ask(&w.r, w.bar(less))
			if err != nil {
				return err
			}
			s.points[s.index(m, b, h, c, n)] = s.keep(&a, less)
		}
	}
	return nil
}

// best returns the place in choices of the best point with a little less of one
// thing.
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

// better reports whether a is worth more than b, where either may be nothing.
func (s *Surface) better(a, b *Choice) bool {
	return a.Fits && (!b.Fits || s.Request.value(a) > s.Request.value(b))
}

// keep returns the place in choices of an answer, or less where that is no worse.
func (s *Surface) keep(a *answer, less int32) int32 {
	if !a.ok || !s.better(&a.choice, &s.choices[less]) {
		return less
	}
	s.choices = append(s.choices, a.choice)
	return int32(len(s.choices) - 1)
}

// at returns the question one point asks.
func (w *surfaceWalk) at(m, b, h, c, n int) Request {
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
