package goodput

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Predict implements perfmodel.Predictor: the throughput, not the goodput, of plain
// data parallelism.
func (t *Tables) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	_, s, err := t.lookup(c.Model.Name, c.Accelerator.Name)
	if err != nil {
		return spec.Prediction{}, err
	}
	sec, err := s.stepSec(c.Plan, c.Shape)
	if err != nil {
		return spec.Prediction{}, err
	}
	return spec.Prediction{Throughput: float64(c.Plan.GlobalBatch()) / sec, By: "goodput"}, nil
}

// Space is the planner.Space of these tables. It has one plan per request: that of
// Tables.Plan, with a global batch that may be slightly larger than the request's, or
// the request's own. The shapes are the packed one, all measured placements with the
// number of devices, and the most even one on each number of nodes.
type Space struct{ *Tables }

// Proven is true: the micro-batches have run on the devices.
func (Space) Proven() bool { return true }

// Configs yields the configurations for r, by number of nodes.
func (s Space) Configs(_ context.Context, r planner.Request) iter.Seq[spec.Config] {
	return func(yield func(spec.Config) bool) {
		plan, err := s.Plan(r.Model.Name, r.Accelerator.Name, r.GlobalBatch, r.Devices)
		if r.Plan != nil && r.Plan.Devices() == r.Devices {
			plan, err = *r.Plan, nil
		}
		_, speeds, unknown := s.lookup(r.Model.Name, r.Accelerator.Name)
		if err != nil || unknown != nil {
			return
		}
		plan.Precision = r.Precision
		for _, shape := range speeds.shapes(r) {
			c := spec.Config{Model: r.Model, SeqLen: r.SeqLen, Plan: plan.Normal(), Accelerator: r.Accelerator, Shape: shape, Link: r.Link, Framework: r.Framework}
			if !yield(c) {
				return
			}
		}
	}
}

// WhyNone returns the reason why Configs yields nothing for r.
func (s Space) WhyNone(r planner.Request) string {
	if _, err := s.Plan(r.Model.Name, r.Accelerator.Name, r.GlobalBatch, r.Devices); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s on %d devices: the placement was not measured", r.Model.Name, r.Devices)
}

// shapes returns the shapes for r, by number of nodes.
func (s *speeds) shapes(r planner.Request) []spec.Shape {
	if r.Shape.Devices != "" {
		return []spec.Shape{r.Shape}
	}
	perNode := r.PerNode
	if perNode < 1 {
		perNode = 8 // the default of planner.Request
	}
	out := []spec.Shape{spec.Packed(r.Devices, perNode)}
	for nodes := 1; nodes <= r.Devices; nodes++ {
		if n := (r.Devices + nodes - 1) / nodes; n <= perNode {
			out = append(out, even(r.Devices, nodes))
		}
	}
	for _, shape := range s.placed {
		if shape.Total() == r.Devices && shape.Most() <= perNode {
			out = append(out, shape)
		}
	}
	slices.SortFunc(out, func(a, b spec.Shape) int {
		return cmp.Or(cmp.Compare(a.Nodes(), b.Nodes()), cmp.Compare(b.Devices, a.Devices))
	})
	return slices.Compact(out)
}

// even returns the shape with devices spread over nodes as evenly as possible.
func even(devices, nodes int) spec.Shape {
	each := make([]int, nodes)
	for i := range devices {
		each[i%nodes]++
	}
	return spec.NewShape(each...)
}
