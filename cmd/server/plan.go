package server

import (
	"cmp"
	"context"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/planner"
)

// PlanRequest asks for the best plans.
type PlanRequest struct {
	ask.Question
	ask.Goal
	ask.Space
	ask.Going
	Network
	Devices  int  `json:"devices" minimum:"1" maximum:"1048576" example:"16"`
	Top      *int `json:"top,omitempty" minimum:"0" maximum:"1000" doc:"The best so many plans, 10 if absent, 0 = all of them, 10000 at most."`
	Rejected bool `json:"rejected,omitempty" doc:"Plans that do not fit too, with the reason."`
	Pareto   bool `json:"pareto,omitempty" doc:"The plans no other beats in speed, memory and devices at once, too."`
	Probe    int  `json:"probe,omitempty" minimum:"1" maximum:"100" doc:"The so many measurements, too, that would change the choice most."`
	Explain  bool `json:"explain,omitempty" doc:"Say where the time and memory of the best plan go."`

	Emit string `json:"emit,omitempty" maxLength:"64" example:"megatron" doc:"Write what starts the best plan under this training framework: launch in the answer."`
}

// maxRows bounds the plans of one answer.
const maxRows = 10000

// top is how many plans are shown.
func (in *PlanRequest) top() int {
	if in.Top == nil {
		return 10
	}
	return cmp.Or(*in.Top, maxRows)
}

// plan answers as pacer plan does.
func (s *Server) plan(ctx context.Context, in *PlanRequest) (ask.Plans, error) {
	start := time.Now()
	r, a, err := s.planQuestion(ctx, in)
	if err != nil {
		return ask.Plans{}, err
	}
	ranking, err := a.planner.Rank(ctx, r)
	if err != nil {
		return ask.Plans{}, err
	}
	out := ask.Plans{Plans: ask.PlanRows(ranking, in.top(), in.Rejected), Evaluated: ranking.Evaluated, Fitting: ranking.Fitting}
	if ranking.Fitting == 0 && !in.Rejected {
		if _, err := a.planner.Best(ctx, r); err != nil { // says what would help
			return ask.Plans{}, err
		}
	}
	if ranking.Fitting > 0 {
		err = a.beside(ctx, in, r, ranking.Choices[0], &out)
	}
	out.ElapsedS = time.Since(start).Seconds()
	return out, err
}

// planQuestion checks and resolves what in says.
func (s *Server) planQuestion(ctx context.Context, in *PlanRequest) (planner.Request, *asked, error) {
	for _, err := range []error{in.Going.Check(), ask.CheckFramework(in.Emit)} {
		if err != nil {
			return planner.Request{}, nil, err
		}
	}
	in.Network.into(&in.Question)
	r, a, err := s.known.resolve(ctx, &in.Question)
	if err != nil {
		return r.Request, nil, err
	}
	if a, err = a.within(&in.Space, in.Precision); err != nil {
		return r.Request, nil, err
	}
	r.Devices = in.Devices
	if r.Top = in.top(); in.Rejected {
		r.TopMisses = r.Top
	}
	return r.Request, a, aim(&in.Goal, &r.Request)
}

// aim makes r, which has everything else, about g.
func aim(g *ask.Goal, r *planner.Request) error {
	if err := g.Set(r); err != nil {
		return err
	}
	if r.GlobalBatch == 0 && r.MinBatch == 0 {
		return noBatch()
	}
	if err := r.Validate(); err != nil {
		return &ask.FieldError{Field: "objective", Value: g.Objective, Err: err}
	}
	return nil
}

// within is a for plans of one space; precision is the format asked for, "" if
// none is.
func (a *asked) within(space *ask.Space, precision string) (*asked, error) {
	if space.Default() {
		return a, nil
	}
	e, err := space.Enumerate(precision)
	if err != nil {
		return nil, err
	}
	narrow := *a
	narrow.planner = planner.New(a.predictor, planner.Options{Space: e})
	return &narrow, nil
}

// beside answers what was asked beside the best plans.
func (a *asked) beside(ctx context.Context, in *PlanRequest, r planner.Request, best planner.Choice, out *ask.Plans) (err error) {
	if in.Explain {
		if out.Plans[0].Explain, err = a.explain(best.Config); err != nil {
			return err
		}
	}
	if in.Pareto {
		front, err := a.planner.Pareto(ctx, r)
		if err != nil {
			return err
		}
		out.Pareto = ask.PlanRows(front, 0, false)
	}
	if in.Probe > 0 {
		probes, err := a.planner.Probes(ctx, r, in.Probe)
		if err != nil {
			return err
		}
		out.Probes = ask.ProbeRows(probes)
	}
	if in.Emit != "" {
		if out.Launch, err = ask.NewLaunch(in.Emit, best); err != nil {
			return err
		}
	}
	out.Move, err = a.move(ctx, &in.Going, best)
	return err
}

// move says whether going over to best pays, nil where that is not asked.
func (a *asked) move(ctx context.Context, g *ask.Going, best planner.Choice) (*ask.MoveRow, error) {
	m, err := g.Move(best.Config)
	if m == nil || err != nil {
		return nil, err
	}
	moving, err := a.planner.Migrate(ctx, *m)
	if err != nil {
		return nil, &ask.FieldError{Field: "from", Value: g.From, NoAnswer: true, Err: err}
	}
	row := ask.NewMoveRow(m, moving)
	return &row, nil
}
