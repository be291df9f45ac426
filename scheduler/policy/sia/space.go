package sia

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Space lists the configurations of jobs.
type Space struct {
	Finder  *candidate.Finder
	elastic scheduler.Elastic // nil = jobs train their own batch
	cells   candidate.PerCurve[[]Cell]
	shapes  map[groupRoom][]spec.Shape
}

// NewSpace returns the space of the predictions of d.Oracle; elastic may be nil.
func NewSpace(d policy.Deps, elastic scheduler.Elastic) *Space {
	return &Space{Finder: candidate.NewFinder(d), elastic: elastic, shapes: map[groupRoom][]spec.Shape{}}
}

// Cell is a configuration of a job.
type Cell struct {
	Group, Devices int
	Goodput        float64            // in any unit
	Options        []candidate.Config // fastest first
	Unpredicted    bool               // no prediction: Options is a guess
	Elastic        bool               // the job chooses its batch
}

// Cells returns the configurations of a job, none without a prediction.
func (p *Space) Cells(ctx context.Context, c spec.Cluster, j *scheduler.JobState) ([]Cell, error) {
	if p.elastic != nil {
		if out, err := p.elasticCells(ctx, c, j); err != nil || len(out) > 0 {
			return out, err
		}
	}
	cv, err := p.Finder.Curve(ctx, c, j.Job)
	if err != nil {
		return nil, err
	}
	return p.cells.Of(cv, func() []Cell { return cellsOf(cv, c) }), nil
}

// elasticCells returns the configurations of a job that chooses its batch.
func (p *Space) elasticCells(ctx context.Context, c spec.Cluster, j *scheduler.JobState) (out []Cell, err error) {
	for gi := range c.Groups {
		g := &c.Groups[gi]
		room := g.Room(j.Job.Host)
		if !j.Job.Accepts(g) || room < 1 {
			continue
		}
		for _, shape := range p.shapesOf(gi, g, room) {
			plan, rate, err := p.elastic.Goodput(ctx, j, g, shape)
			if errors.Is(err, perfmodel.ErrNotCovered) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("policy: sia: %w", err)
			}
			o := candidate.Config{Group: gi, Plan: plan, Shape: shape, Devices: plan.Devices(), Rate: rate}
			out = append(out, Cell{Group: gi, Devices: o.Devices, Goodput: rate, Options: []candidate.Config{o}, Elastic: true})
		}
	}
	return out, nil
}

// shapesOf returns the shapes in a group if at most room devices of each node are usable.
func (p *Space) shapesOf(group int, g *spec.NodeGroup, room int) []spec.Shape {
	key := groupRoom{group, room}
	out, ok := p.shapes[key]
	if ok {
		return out
	}
	for _, n := range candidate.Sizes(g) {
		if shape := spec.Packed(n, room); isSiaSize(n, g.Devices) && shape.Nodes() <= g.Count {
			out = append(out, shape)
		}
	}
	p.shapes[key] = out
	return out
}

// groupRoom is the key of shapesOf.
type groupRoom struct{ group, room int }

// cellsOf returns the configurations of a curve.
func cellsOf(cv *candidate.Curve, c spec.Cluster) []Cell {
	var all, out []Cell
	for options := range candidate.BySize(cv.Configs) {
		o := &options[0]
		all = append(all, Cell{Group: o.Group, Devices: o.Devices, Goodput: o.Rate, Options: options})
	}
	for _, cell := range all {
		if isSiaSize(cell.Devices, c.Groups[cell.Group].Devices) {
			out = append(out, cell)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// manyNodes is the number of nodes up to which every number of whole nodes is a
// configuration; above it only powers of two are.
const manyNodes = 16

// isSiaSize reports whether a number of devices is a configuration: a power of two within a
// node, or whole nodes.
func isSiaSize(devices, perNode int) bool {
	powerOfTwo := func(n int) bool { return n&(n-1) == 0 }
	if devices < perNode {
		return powerOfTwo(devices)
	}
	nodes := devices / perNode
	return devices%perNode == 0 && (nodes <= manyNodes || powerOfTwo(nodes))
}
