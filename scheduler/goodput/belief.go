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

// Predict implements perfmodel.Predictor: the throughput of plain data
// parallelism, whatever its batch is worth.
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

// Space is what may be proposed for jobs of these tables: one plan for a global
// batch on so many devices (see Plan), or the one asked about, on the packed
// shape, on every placement of that many devices that was measured, and evenly
// over any number of nodes. It is a planner.Space. The plan's global batch may be
// a little more than the request's.
type Space struct{ *Tables }

// Proven is true: the batches that run on a device are those that have run.
func (Space) Proven() bool { return true }

// Configs yields what may be proposed for r, by nodes.
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

// WhyNone says why there is nothing to propose for r.
func (s Space) WhyNone(r planner.Request) string {
	if _, err := s.Plan(r.Model.Name, r.Accelerator.Name, r.GlobalBatch, r.Devices); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s on %d devices: no such placement was measured", r.Model.Name, r.Devices)
}

// shapes returns the layouts of r's devices, by nodes.
func (s *speeds) shapes(r planner.Request) []spec.Shape {
	if r.Shape.Devices != "" {
		return []spec.Shape{r.Shape}
	}
	perNode := r.PerNode
	if perNode < 1 {
		perNode = 8 // as planner.Request says
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

// even is so many devices over nodes as evenly as possible.
func even(devices, nodes int) spec.Shape {
	each := make([]int, nodes)
	for i := range devices {
		each[i%nodes]++
	}
	return spec.NewShape(each...)
}
