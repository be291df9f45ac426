package answer

import (
	"cmp"
	"context"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
)

// PlanRequest asks for the best plans.
type PlanRequest struct {
	query.Request
	query.Goal
	query.Space
	query.Migration
	Described
	Devices  int  `json:"devices" minimum:"1" maximum:"1048576" example:"16"`
	Top      *int `json:"top,omitempty" minimum:"0" maximum:"1000" doc:"Number of plans, 10 if absent, 0 = all, 10000 at most."`
	Rejected bool `json:"rejected,omitempty" doc:"Add plans that do not fit, with the reason."`
	Pareto   bool `json:"pareto,omitempty" doc:"Add the plans on the Pareto front of speed, memory and devices."`
	Probe    int  `json:"probe,omitempty" minimum:"1" maximum:"100" doc:"Number of measurements to add that would change the choice most."`
	Explain  bool `json:"explain,omitempty" doc:"Add the parts of time and memory of the best plan, and the training stacks assumed."`

	Emit string `json:"emit,omitempty" maxLength:"64" example:"megatron" doc:"Add the files that start the best plan under this training framework, as launch. Without framework, its training stack is predicted for."`
}

// MaxRows bounds the plans of one answer.
const MaxRows = 10000

// top is how many plans are shown.
func (in *PlanRequest) top() int {
	if in.Top == nil {
		return 10
	}
	return cmp.Or(*in.Top, MaxRows)
}

// Plan answers like pacer plan.
func (c *Answerer) Plan(ctx context.Context, in *PlanRequest) (query.Plans, error) {
	start := time.Now()
	r, a, err := c.planRequest(ctx, in)
	if err != nil {
		return query.Plans{}, err
	}
	ranking, err := a.Planner.Rank(ctx, r)
	if err != nil {
		return query.Plans{}, err
	}
	out := query.Plans{Plans: query.PlanRows(ranking, in.top(), in.Rejected), Evaluated: ranking.Evaluated, Fitting: ranking.Fitting}
	if ranking.Fitting == 0 && !in.Rejected {
		if _, err := a.Planner.Best(ctx, r); err != nil { // says what would help
			return query.Plans{}, err
		}
	}
	if ranking.Fitting > 0 {
		if err := query.SetBeatsBest(ctx, a.Planner, r, ranking, out.Plans); err != nil {
			return query.Plans{}, err
		}
		err = a.extras(ctx, in, r, ranking.Choices[0], &out)
	}
	out.ElapsedS = time.Since(start).Seconds()
	return out, err
}

// planRequest checks and resolves in.
func (c *Answerer) planRequest(ctx context.Context, in *PlanRequest) (planner.Request, *Model, error) {
	for _, err := range []error{in.Migration.Check(), in.AssumeStackOf(in.Emit)} {
		if err != nil {
			return planner.Request{}, nil, err
		}
	}
	in.Into(&in.Request)
	r, a, err := c.Resolve(ctx, &in.Request)
	if err != nil {
		return r.Request, nil, err
	}
	if a, err = a.within(&in.Space, in.Precision); err != nil {
		return r.Request, nil, err
	}
	if err := r.On(&in.Request, in.Devices); err != nil {
		return r.Request, nil, err
	}
	if r.Top = in.top(); in.Rejected {
		r.TopMisses = r.Top
	}
	return r.Request, a, aim(&in.Goal, &r.Request)
}

// aim sets the objective of r and validates it.
func aim(g *query.Goal, r *planner.Request) error {
	if err := g.Set(r); err != nil {
		return err
	}
	if r.GlobalBatch == 0 && r.MinBatch == 0 {
		return noBatch()
	}
	if err := r.Validate(); err != nil {
		return &query.FieldError{Field: "objective", Value: g.Objective, Err: err}
	}
	return nil
}

// within returns the model for the plans of one space; precision is the requested
// format, "" = none.
func (a *Model) within(space *query.Space, precision string) (*Model, error) {
	if space.Default() {
		return a, nil
	}
	e, err := space.Enumerate(precision)
	if err != nil {
		return nil, err
	}
	narrow := *a
	narrow.Planner = planner.New(a.Predictor, planner.Options{Space: e})
	return &narrow, nil
}

// extras adds the parts of the response besides the best plans.
func (a *Model) extras(ctx context.Context, in *PlanRequest, r planner.Request, best planner.Choice, out *query.Plans) (err error) {
	if in.Explain {
		if out.Plans[0].Explain, err = a.explain(best.Config); err != nil {
			return err
		}
	}
	if in.Pareto {
		front, err := a.Planner.Pareto(ctx, r)
		if err != nil {
			return err
		}
		out.Pareto = query.PlanRows(front, 0, false)
	}
	if in.Probe > 0 {
		probes, err := a.Planner.Probes(ctx, r, in.Probe)
		if err != nil {
			return err
		}
		out.Probes = query.ProbeRows(probes)
	}
	if in.Emit != "" {
		if out.Launch, err = query.NewLaunch(in.Emit, best); err != nil {
			return err
		}
	}
	out.Move, err = a.move(ctx, &in.Migration, best)
	return err
}

// move returns whether migrating to best pays, nil where g has no plan to move from.
func (a *Model) move(ctx context.Context, g *query.Migration, best planner.Choice) (*query.MoveRow, error) {
	m, err := g.Move(best.Config)
	if m == nil || err != nil {
		return nil, err
	}
	moving, err := a.Planner.Migrate(ctx, *m)
	if err != nil {
		return nil, &query.FieldError{Field: "from", Value: g.From, NoAnswer: true, Err: err}
	}
	row := query.NewMoveRow(m, moving)
	return &row, nil
}
