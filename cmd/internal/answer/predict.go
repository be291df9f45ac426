package answer

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
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

// AppendKept appends the JSON of Predict's answer to q, where a plan is kept that answers without a search. Else it
// returns nil.
func (c *Answerer) AppendKept(ctx context.Context, b []byte, q *Question) []byte {
	start := time.Now()
	p, _ := c.kept(q)
	var choice planner.Choice
	if p == nil || !p.direct(ctx, q.Seq, &choice) {
		return nil
	}
	out, err := p.appendPlans(b, &choice, start)
	if err != nil {
		return nil // AppendPrediction has the error
	}
	return out
}

// AppendPrediction appends the JSON of Predict's answer to q, and keeps the plan for AppendKept. Errors are those of Predict.
func (c *Answerer) AppendPrediction(ctx context.Context, b []byte, q *Question) ([]byte, error) {
	start := time.Now()
	p := c.prepared(ctx, q)
	var choice planner.Choice
	if err := p.At(ctx, q.Seq, &choice); err != nil {
		return nil, err
	}
	return p.appendPlans(b, &choice, start)
}

// appendPlans appends the JSON of query.Plans with one row.
func (p *Prepared) appendPlans(b []byte, choice *planner.Choice, start time.Time) ([]byte, error) {
	out, err := p.appendRow(append(b, `{"plans":[`...), choice)
	if err != nil {
		return nil, err
	}
	fitting := 0
	if choice.Fits {
		fitting = 1
	}
	return query.AppendPlansEnd(out, 1, fitting, time.Since(start).Seconds())
}

// kept returns the plan of q that is kept, nil if none is, and the generation that it is of.
func (c *Answerer) kept(q *Question) (*Prepared, uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.plans[q.PlanOnly()], c.generation
}

// maxPlans bounds the plans that are kept.
const maxPlans = 1024

// prepared returns the plan of q, prepared for the present models and measurements.
func (c *Answerer) prepared(ctx context.Context, q *Question) *Prepared {
	p, generation := c.kept(q)
	if p != nil {
		return p
	}
	key := q.PlanOnly().clone()
	p = c.NewBatch(nil).PrepareRows(ctx, &key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.err == nil && c.generation == generation { // else p may be out of date
		if len(c.plans) >= maxPlans {
			clear(c.plans)
		}
		c.plans[key] = p
	}
	return p
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
