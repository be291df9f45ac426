package policy

import (
	"context"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// curve is the resource sensitivity of one kind of job: every way to run it at
// any size on any group it accepts, the best believed plan of each shape.
type curve struct {
	options []option // by group, devices, fastest first
	byShape map[shapeKey]int
}

type shapeKey struct {
	group int
	shape string
}

type curveKey struct {
	kindOf
	precision   spec.Precision
	accelerator string
}

// curve returns the sensitivity curve of j, without options if the oracle knows
// nothing of such jobs.
func (b *belief) curve(ctx context.Context, c spec.Cluster, j *spec.Job) (*curve, error) {
	key := curveKey{kind(j), j.Plan.Precision, j.Accelerator}
	if cv, ok := b.curves[key]; ok {
		return cv, nil
	}
	cv := &curve{byShape: map[shapeKey]int{}}
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if !accepts(j, g) {
			continue
		}
		for _, n := range sizes(g) {
			options, err := b.ask(ctx, gi, g, request(j, g, n), j.Host)
			if err != nil {
				return nil, err
			}
			cv.options = append(cv.options, options...)
		}
	}
	for i, o := range cv.options {
		cv.byShape[shapeKey{o.group, o.shape.Devices}] = i
	}
	b.curves[key] = cv
	return cv, nil
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

// of returns the option a grant runs, nil if it is not among them: the job then
// runs as submitted.
func (cv *curve) of(g *scheduler.Grant, group int) *option {
	i, ok := cv.byShape[shapeKey{group, g.Shape.Devices}]
	if !ok {
		return nil
	}
	if o := &cv.options[i]; o.plan == g.Plan {
		return o
	}
	return nil
}

// reaching returns the options that are at least as fast as rate.
func reaching(options []option, rate float64) []option {
	return slices.DeleteFunc(slices.Clone(options), func(o option) bool { return o.rate < rate })
}
