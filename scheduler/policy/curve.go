package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// curve is the resource sensitivity of one kind of job: every way to run it at
// any size on any group it accepts, the best believed plan of each shape.
type curve struct {
	options []option // by group, devices, fastest first
	byShape map[shapeKey]int

	revision int // belief.revision then
}

type shapeKey struct {
	group int
	shape spec.Shape
}

type curveKey struct {
	kindOf
	precision   spec.Precision
	accelerator string
	fixed       fixed
	plan        spec.Plan // the job's own, where that matters
	devices     int       // and its size, where that does
}

// fixed is what of a job stays as submitted.
type fixed struct {
	plan bool // but for the data parallel degree, which follows the devices, and how the batch is split
	size bool // the number of devices
}

// sizes returns the device counts that j may have in g, ascending.
func (f fixed) sizes(j *spec.Job, g *spec.NodeGroup) []int {
	if f.size {
		return []int{j.Devices}
	}
	return sizes(g)
}

// allows reports whether j may run with a plan.
func (f fixed) allows(j *spec.Job, p spec.Plan) bool {
	return !f.plan || scaled(j.Plan) == scaled(p)
}

// scaled is what plans have in common that differ in the number of replicas alone.
func scaled(p spec.Plan) spec.Plan {
	p.DP, p.MicroBatch, p.AccumSteps, p.Shard = 1, 1, 1, 0
	return p.Normal()
}

// curve returns the sensitivity curve of j, without options if the oracle knows
// nothing of such jobs.
func (b *belief) curve(ctx context.Context, c spec.Cluster, j *spec.Job) (*curve, error) {
	return b.curveOf(ctx, c, j, fixed{})
}

// curveOf returns the part of the sensitivity curve on which what is fixed stays.
// A job whose own plan cannot be had at other sizes has its ways as submitted.
func (b *belief) curveOf(ctx context.Context, c spec.Cluster, j *spec.Job, f fixed) (*curve, error) {
	f.plan = f.plan && j.Plan != (spec.Plan{})
	key := curveKey{kindOf: kind(j), precision: j.Plan.Precision, accelerator: j.Accelerator, fixed: f}
	if f.plan {
		key.plan = j.Plan
	}
	if f.plan || f.size {
		key.devices = j.Devices
	}
	revision := b.revision(c, j)
	if cv, ok := b.curves[key]; ok && cv.revision == revision {
		return cv, nil
	}
	options, err := b.curveOptions(ctx, c, j, f)
	if err != nil {
		return nil, err
	}
	if len(options) == 0 && f.plan {
		w, err := b.asSubmitted(ctx, c, j)
		if err != nil {
			return nil, err
		}
		options = w.options
	}
	cv := &curve{options: options, byShape: map[shapeKey]int{}, revision: revision}
	for i, o := range options {
		cv.byShape[shapeKey{o.group, o.shape}] = i
	}
	b.curves[key] = cv
	return cv, nil
}

func (b *belief) curveOptions(ctx context.Context, c spec.Cluster, j *spec.Job, f fixed) (all []option, err error) {
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if !accepts(j, g) {
			continue
		}
		for _, n := range f.sizes(j, g) {
			allowed := func(p spec.Plan) bool { return f.allows(j, p) }
			options, err := b.ask(ctx, gi, g, request(j, g, n), j.Host, allowed)
			if err != nil {
				return nil, err
			}
			if options, err = b.withCPUs(ctx, gi, g, j, options, allowed); err != nil {
				return nil, err
			}
			all = append(all, options...)
		}
	}
	return all, nil
}

// manySizes is up to where every device count is asked for; beyond it only
// whole nodes, and beyond manySizes nodes only powers of two of them, so that a
// large cluster does not ask a planner a hundred thousand questions per model.
const manySizes = 128

// sizes returns the device counts worth asking for in g, ascending.
func sizes(g *spec.NodeGroup) []int {
	all := g.Count * g.Devices
	var out []int
	for n := 1; n <= min(all, manySizes); n++ {
		out = append(out, n)
	}
	for nodes := 1; nodes <= g.Count; nodes++ {
		if n := nodes * g.Devices; n > manySizes && (nodes <= manySizes || nodes&(nodes-1) == 0) {
			out = append(out, n)
		}
	}
	return out
}

// at returns the option that is the same way as o, nil if there is none.
func (cv *curve) at(o *option) *option {
	i, ok := cv.byShape[shapeKey{o.group, o.shape}]
	if !ok || cv.options[i].plan != o.plan {
		return nil
	}
	return &cv.options[i]
}

// of returns the option a grant runs, nil if it is not among them: the job then
// runs as submitted.
func (cv *curve) of(g *scheduler.Grant, group int) *option {
	i, ok := cv.byShape[shapeKey{group, g.Shape}]
	if !ok {
		return nil
	}
	if o := &cv.options[i]; o.plan == g.Plan {
		return o
	}
	return nil
}

// held returns the option that j, which holds devices in group, runs. When the
// oracle has come to think that another plan is better where j runs, it is none of
// cv's. nil: nothing is believed of it.
func (b *belief) held(ctx context.Context, c spec.Cluster, j *scheduler.JobState, group int, cv *curve) (*option, error) {
	if o := cv.of(j.Grant, group); o != nil || b.learns == nil || len(cv.options) == 0 {
		return o, nil
	}
	g, in := j.Grant, &c.Groups[group]
	p, err := b.oracle.Predict(ctx, spec.Config{Model: j.Job.Model, SeqLen: j.Job.SeqLen, Plan: g.Plan, Accelerator: in.Accelerator, Shape: g.Shape, Link: in.Link})
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %s on %s: %w", j.Job.Model.Name, g.Shape.Devices, err)
	}
	return &option{group: group, plan: g.Plan, shape: g.Shape, devices: g.Devices(),
		rate: p.Throughput / float64(g.Plan.Normal().GlobalBatch()), spread: spread(p)}, nil
}

// reaching returns the options that are at least as fast as rate.
func reaching(options []option, rate float64) []option {
	return slices.DeleteFunc(slices.Clone(options), func(o option) bool { return o.rate < rate })
}
