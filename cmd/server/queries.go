package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

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

func (d *Described) into(q *query.Request) {
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

// BatchRequest asks about many plans.
type BatchRequest struct {
	Questions []PredictRequest `json:"questions" minItems:"1" maxItems:"10000"`
}

// Batch answers a BatchRequest, a row per question in its order.
type Batch struct {
	Rows     []BatchRow `json:"rows"`
	ElapsedS float64    `json:"elapsed_s"`
}

// BatchRow is a prediction, or why there is none.
type BatchRow struct {
	Plan    *query.PlanRow `json:"plan,omitempty"`
	Launch  *query.Launch  `json:"launch,omitempty" doc:"Files that start the plan, with emit."`
	Problem *Problem       `json:"problem,omitempty"`
}

// FitCheckRequest asks whether a plan, or any, fits.
type FitCheckRequest struct {
	query.Request
	Described
	Plan    string `json:"plan,omitempty" maxLength:"1024" doc:"The plan; if absent, any on the given devices."`
	Devices int    `json:"devices,omitempty" minimum:"1" maximum:"1048576" doc:"Needed without a plan."`
	Shape   string `json:"shape,omitempty" maxLength:"4096" doc:"Devices of each node, such as 8+8."`
}

func (s *Server) registerQueries(api huma.API, m *router) {
	const tag = "questions"
	register(s, api, m, operation{http.MethodPost, "/v1/predict", "predict", tag, light, "Step time and memory of a plan",
		"As pacer predict, one row. Where memory does not suffice, fits is false and why has the reason.", []int{404, 422}},
		func(ctx context.Context, in *body[PredictRequest]) (query.Plans, error) {
			return s.predict(ctx, &in.Body)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/predict/batch", "predict-batch", tag, search, "Step time and memory of many plans",
		"A row per question, in order: a plan or a problem.", nil},
		func(ctx context.Context, in *body[BatchRequest]) (Batch, error) { return s.batch(ctx, in.Body) })
	register(s, api, m, operation{http.MethodPost, "/v1/plan", "plan", tag, search, "The best plans on given devices",
		"As pacer plan. Where no plan fits, the response is a problem with the nearest plan and a remedy, unless the request has rejected.", []int{404, 422}},
		func(ctx context.Context, in *body[PlanRequest]) (query.Plans, error) { return s.plan(ctx, &in.Body) })
	register(s, api, m, operation{http.MethodPost, "/v1/curve", "curve", tag, search, "Best throughput on every number of devices",
		"As pacer curve. With axes, or several accelerators separated by commas, the response is a surface.", []int{404, 422}},
		func(ctx context.Context, in *body[CurveRequest]) (query.Curve, error) { return s.curve(ctx, &in.Body) })
	register(s, api, m, operation{http.MethodPost, "/v1/recommend", "recommend", tag, search, "How many devices to train on, and their type, with time and cost",
		"As pacer recommend. The accelerators are those of have.", []int{404, 422}},
		func(ctx context.Context, in *body[RecommendRequest]) (query.Recommendation, error) {
			return s.recommend(ctx, &in.Body)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/fit-check", "fit-check", tag, search, "Whether a plan fits, its headroom, and changes that make it fit",
		"As pacer fit-check.", []int{404, 422}},
		func(ctx context.Context, in *body[FitCheckRequest]) (query.FitCheck, error) {
			return s.fitCheck(ctx, &in.Body)
		})
}

// RecommendRequest asks how many devices, and of what type, to train on.
type RecommendRequest struct {
	query.RecommendRequest
	Described
	Accelerator string `json:"accelerator,omitempty" maxLength:"256" doc:"Not used: the types are those of have."`
}

// recommend answers like pacer recommend.
func (s *Server) recommend(ctx context.Context, in *RecommendRequest) (query.Recommendation, error) {
	in.into(&in.Request)
	out, err := query.Recommend(ctx, func(ctx context.Context, q query.Request) (query.Resolved, error) {
		r, _, err := s.models.resolve(ctx, &q)
		return r, err
	}, in.RecommendRequest)
	if err != nil {
		return query.Recommendation{}, err
	}
	return *out, nil
}

// predict answers like pacer predict.
func (s *Server) predict(ctx context.Context, in *PredictRequest) (query.Plans, error) {
	start := time.Now()
	row, begin, err := s.predictRow(ctx, in)
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

// predictRow returns the row of the plan, and its launch files where in has Emit.
func (s *Server) predictRow(ctx context.Context, in *PredictRequest) (row query.PlanRow, start *query.Launch, err error) {
	in.into(&in.Request)
	if err := in.AssumeStackOf(in.Emit); err != nil {
		return row, nil, err
	}
	r, a, err := s.models.resolve(ctx, &in.Request)
	if err == nil {
		err = r.Fix(&in.Request, in.FixedPlan)
	}
	if err != nil {
		return row, nil, err
	}
	choice, err := a.planner.Fixed(ctx, r.Request)
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
func (a *answerer) explain(c spec.Config) (*query.ExplanationRow, error) {
	e, err := query.ExplainerOf(a.predictor, a.family)
	if err != nil {
		return nil, err
	}
	var m *memory.Estimator
	if known, err := a.planner.Memory(c); err == nil {
		m = &known
	}
	out, err := query.Explain(e, m, c)
	if err != nil {
		return nil, err
	}
	return out.JSON(), nil
}

// batch answers requests on all cores.
func (s *Server) batch(ctx context.Context, in BatchRequest) (Batch, error) {
	start := time.Now()
	out := Batch{Rows: make([]BatchRow, len(in.Questions))}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(in.Questions) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				out.Rows[i] = s.batchRow(ctx, &in.Questions[i])
			}
		})
	}
	wg.Wait()
	out.ElapsedS = time.Since(start).Seconds()
	return out, ctx.Err()
}

func (s *Server) batchRow(ctx context.Context, q *PredictRequest) (out BatchRow) {
	defer func() { // net/http does not recover panics of other goroutines
		if v := recover(); v != nil {
			s.metrics.panics.Inc()
			s.o.Log.Error("panic", "id", requestOf(ctx).id, "path", "/v1/predict/batch", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
			out = BatchRow{Problem: newProblem(http.StatusInternalServerError, "", "an internal error, which was logged")}
		}
	}()
	row, begin, err := s.predictRow(ctx, q)
	if err != nil {
		p := problem(err)
		if p.Status == http.StatusInternalServerError {
			s.o.Log.Error("row failed", "id", requestOf(ctx).id, "path", "/v1/predict/batch", "error", err)
		}
		shorten(&p.ErrorModel)
		return BatchRow{Problem: p}
	}
	return BatchRow{Plan: &row, Launch: begin}
}

func noBatch() error {
	return &query.FieldError{Field: "global_batch", Value: 0, Why: fmt.Sprintf("is not in 1..%d: how many samples per optimizer step?", query.MaxBatch)}
}

// searched resolves a request about more than one plan.
func (s *Server) searched(ctx context.Context, q *query.Request, d *Described) (query.Resolved, *answerer, error) {
	d.into(q)
	r, a, err := s.models.resolve(ctx, q)
	if err == nil && q.GlobalBatch == 0 {
		err = noBatch()
	}
	return r, a, err
}

// fitCheck answers like pacer fit-check.
func (s *Server) fitCheck(ctx context.Context, in *FitCheckRequest) (query.FitCheck, error) {
	var r query.Resolved
	var a *answerer
	var err error
	if in.Plan != "" {
		in.into(&in.Request)
		if r, a, err = s.models.resolve(ctx, &in.Request); err == nil {
			err = r.Fix(&in.Request, query.FixedPlan{Plan: in.Plan, Devices: in.Devices, Shape: in.Shape})
		}
	} else if r, a, err = s.searched(ctx, &in.Request, &in.Described); err == nil {
		if err = query.InRange("devices", in.Devices, query.MaxDevices); err == nil {
			err = r.On(&in.Request, in.Devices)
		}
	}
	if err != nil {
		return query.FitCheck{}, err
	}
	report, err := a.planner.FitCheck(ctx, r.Request)
	if err != nil {
		return query.FitCheck{}, err
	}
	return query.NewFitCheck(report), nil
}
