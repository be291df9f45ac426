package answer

import (
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// FitCheckRequest asks whether a plan, or any, fits.
type FitCheckRequest struct {
	query.Request
	Described
	Plan    string `json:"plan,omitempty" maxLength:"1024" doc:"The plan; if absent, any on the given devices."`
	Devices int    `json:"devices,omitempty" minimum:"1" maximum:"1048576" doc:"Needed without a plan."`
	Shape   string `json:"shape,omitempty" maxLength:"4096" doc:"Devices of each node, such as 8+8."`
}

func noBatch() error {
	return &query.FieldError{Field: "global_batch", Value: 0, Why: fmt.Sprintf("is not in 1..%d: how many samples per optimizer step?", query.MaxBatch)}
}

// searched resolves a request about more than one plan.
func (c *Answerer) searched(ctx context.Context, q *query.Request, d *Described) (query.Resolved, *Model, error) {
	d.Into(q)
	r, a, err := c.Resolve(ctx, q)
	if err == nil && q.GlobalBatch == 0 {
		err = noBatch()
	}
	return r, a, err
}

// FitCheck answers like pacer fit-check.
func (c *Answerer) FitCheck(ctx context.Context, in *FitCheckRequest) (query.FitCheck, error) {
	var r query.Resolved
	var a *Model
	var err error
	if in.Plan != "" {
		in.Into(&in.Request)
		if r, a, err = c.Resolve(ctx, &in.Request); err == nil {
			err = r.Fix(&in.Request, query.FixedPlan{Plan: in.Plan, Devices: in.Devices, Shape: in.Shape})
		}
	} else if r, a, err = c.searched(ctx, &in.Request, &in.Described); err == nil {
		if err = query.InRange("devices", in.Devices, query.MaxDevices); err == nil {
			err = r.On(&in.Request, in.Devices)
		}
	}
	if err != nil {
		return query.FitCheck{}, err
	}
	report, err := a.Planner.FitCheck(ctx, r.Request)
	if err != nil {
		return query.FitCheck{}, err
	}
	return query.NewFitCheck(report), nil
}
