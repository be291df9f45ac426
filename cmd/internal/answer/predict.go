package answer

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Described has what a request describes by figures in place of names, and the parts of its training stack.
type Described struct {
	Own    *spec.Model       `json:"network,omitempty" doc:"The model itself, where neither the catalog nor the store has it."`
	Device *spec.Accelerator `json:"device,omitempty" doc:"The type of device itself, where neither the catalog nor the store has it."`
	Parts  []string          `json:"stack,omitempty" maxItems:"64" example:"[\"launch=eager\"]" doc:"Parts of the training stack that differ from those of framework, PART=VALUE; docs/reference/catalog.md lists them."`
}

// Into adds what d describes to q.
func (d *Described) Into(q *query.Request) {
	q.Stack = strings.Join(d.Parts, " ")
	if d.Device != nil {
		q.Chip = query.ChipOf(*d.Device)
		q.Chip.Accelerator.Name = cmp.Or(q.Chip.Accelerator.Name, q.Accelerator)
	}
	if d.Own != nil {
		q.Network = *d.Own
		q.Network.Name = cmp.Or(q.Network.Name, q.Model)
	}
}

// PredictRequest asks about one plan.
type PredictRequest struct {
	query.Request
	query.FixedPlan
	Described
	Explain bool   `json:"explain,omitempty" doc:"Add the parts of time and memory, and the training stacks assumed."`
	Emit    string `json:"emit,omitempty" maxLength:"64" example:"megatron" doc:"Add the files that start the plan under this training framework, as launch. Without framework, its training stack is predicted for."`
}

// Predict answers like pacer predict.
func (c *Answerer) Predict(ctx context.Context, in *PredictRequest) (query.Plans, error) {
	start := time.Now()
	row, begin, err := c.PredictRow(ctx, in)
	if err != nil {
		return query.Plans{}, err
	}
	out := query.Plans{Plans: []query.PlanRow{row}, Evaluated: 1, Launch: begin}
	if row.Fits {
		out.Fitting = 1
	}
	out.ElapsedS = time.Since(start).Seconds()
	return out, nil
}

// PredictRow returns the row of the plan, and its launch files where in has Emit.
func (c *Answerer) PredictRow(ctx context.Context, in *PredictRequest) (row query.PlanRow, start *query.Launch, err error) {
	in.Into(&in.Request)
	if err := in.AssumeStackOf(in.Emit); err != nil {
		return row, nil, err
	}
	r, a, err := c.Resolve(ctx, &in.Request)
	if err == nil {
		err = r.Fix(&in.Request, in.FixedPlan)
	}
	if err != nil {
		return row, nil, err
	}
	choice, err := a.Planner.Fixed(ctx, r.Request)
	if err != nil {
		return row, nil, err
	}
	row = query.NewPlanRow(choice)
	if in.Explain {
		if row.Explain, err = a.explain(choice.Config); err != nil {
			return row, nil, err
		}
	}
	if in.Emit != "" {
		start, err = query.NewLaunch(in.Emit, choice)
	}
	return row, start, err
}

// explain returns the parts of the time and memory of c.
func (a *Model) explain(c spec.Config) (*query.ExplanationRow, error) {
	e, err := query.ExplainerOf(a.Predictor, a.Family)
	if err != nil {
		return nil, err
	}
	var m *memory.Estimator
	if known, err := a.Planner.Memory(c); err == nil {
		m = &known
	}
	out, err := query.Explain(e, m, c)
	if err != nil {
		return nil, err
	}
	return out.JSON(), nil
}
