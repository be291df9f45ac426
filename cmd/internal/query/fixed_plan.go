package query

import (
	"cmp"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// FixedPlan extends a request by one plan, in the form of spec.ParsePlan, and where
// it runs. A zero field is not given. Comparable.
type FixedPlan struct {
	Plan    string `json:"plan" minLength:"1" maxLength:"1024" example:"dp=8,tp=2,mb=1,ga=8,zero=1" doc:"Execution plan as key=value pairs, docs/reference/execution-plans.md."`
	Devices int    `json:"devices,omitempty" minimum:"1" maximum:"1048576" doc:"Must equal the devices of the plan."`
	Shape   string `json:"shape,omitempty" maxLength:"4096" example:"8+8" doc:"Devices of each node, such as 8+8 or 2x8; the fewest nodes if absent."`
}

// Fix restricts r, the answer to q, to the plan of f on one shape. The global batch of q, unless
// it is 0, must agree. Errors are *FieldError.
func (r *Resolved) Fix(q *Request, f FixedPlan) error {
	plan, err := spec.ParsePlan(f.Plan)
	if err != nil {
		return &FieldError{Field: "plan", Value: f.Plan, Err: err}
	}
	if b := plan.GlobalBatch(); q.GlobalBatch != 0 && q.GlobalBatch != b {
		return &FieldError{Field: "global_batch", Value: q.GlobalBatch, Why: fmt.Sprintf(", but dp x mb x ga of the plan is %d", b)}
	} else if b > MaxBatch {
		return &FieldError{Field: "plan", Value: f.Plan, Why: fmt.Sprintf("has a global batch of %d, want at most %d", b, MaxBatch)}
	}
	if requested := spec.Precision(q.Precision); plan.Precision != "" && requested != "" && plan.Precision != requested {
		return &FieldError{Field: "precision", Value: requested, Why: fmt.Sprintf(", but the plan says precision=%s", plan.Precision)}
	}
	plan.Precision = cmp.Or(plan.Precision, r.Precision, r.Accelerator.DefaultPrecision())
	if err := CheckPrecision(plan.Precision, r.Accelerator); err != nil {
		return err
	}
	r.Plan, r.GlobalBatch = &plan, plan.GlobalBatch()
	if r.Shape, err = layout(plan, r.PerNode, f); err != nil {
		return err
	}
	return r.On(q, plan.Devices())
}

// layout returns the shape of a plan.
func layout(plan spec.Plan, perNode int, f FixedPlan) (spec.Shape, error) {
	n := plan.Devices()
	if f.Devices != 0 && f.Devices != n {
		return spec.Shape{}, &FieldError{Field: "devices", Value: f.Devices, Why: fmt.Sprintf(", but dp x tp x pp x cp of the plan is %d", n)}
	}
	if f.Shape == "" {
		return spec.Packed(n, perNode), nil
	}
	shape, err := spec.ParseShape(f.Shape)
	if err != nil {
		return shape, &FieldError{Field: "shape", Value: f.Shape, Err: err}
	}
	if shape.Total() != n {
		return shape, &FieldError{Field: "shape", Value: f.Shape, Why: fmt.Sprintf("has %d devices, the plan needs %d", shape.Total(), n)}
	}
	if shape.Most() > perNode {
		return shape, &FieldError{Field: "shape", Value: f.Shape, Why: fmt.Sprintf("has %d devices on one node, the node holds %d; {per_node} changes that", shape.Most(), perNode)}
	}
	return shape, nil
}
