package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Network is how a question brings its model along.
type Network struct {
	Own *spec.Model `json:"network,omitempty" doc:"The model itself, where it is none of the catalog or the store."`
}

func (n *Network) into(q *ask.Question) {
	if n.Own != nil {
		q.Network = *n.Own
		q.Network.Name = cmp.Or(q.Network.Name, q.Model)
	}
}

// PredictRequest asks about one plan.
type PredictRequest struct {
	ask.Question
	ask.Fixed
	Network
	Explain bool   `json:"explain,omitempty" doc:"Say where time and memory go."`
	Emit    string `json:"emit,omitempty" maxLength:"64" example:"megatron" doc:"Write what starts the plan under this training framework: launch in the answer."`
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
	Plan    *ask.PlanRow `json:"plan,omitempty"`
	Launch  *ask.Launch  `json:"launch,omitempty" doc:"What starts the plan, where that was asked for."`
	Problem *Problem     `json:"problem,omitempty"`
}

// FitCheckRequest asks whether a plan, or any, fits.
type FitCheckRequest struct {
	ask.Question
	Network
	Plan    string `json:"plan,omitempty" maxLength:"1024" doc:"The plan; if absent, any on the given devices."`
	Devices int    `json:"devices,omitempty" minimum:"1" maximum:"1048576" doc:"Needed without a plan."`
	Shape   string `json:"shape,omitempty" maxLength:"4096" doc:"Devices of each node, such as 8+8."`
}

func (s *Server) registerQuestions(api huma.API, m *router) {
	const tag = "questions"
	m.first["POST /v1/predict"] = s.predictAtOnce
	register(s, api, m, operation{http.MethodPost, "/v1/predict", "predict", tag, light, "Step time and memory of a plan",
		"As pacer predict: one row; fits is false, and why says it, where memory does not suffice.", []int{404, 422}},
		func(ctx context.Context, in *body[PredictRequest]) (ask.Plans, error) {
			return s.predict(ctx, &in.Body)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/predict/batch", "predict-batch", tag, search, "Step time and memory of many plans",
		"A row per question, in order: a plan, or the problem there is with the question.", nil},
		func(ctx context.Context, in *body[BatchRequest]) (Batch, error) { return s.batch(ctx, in.Body) })
	register(s, api, m, operation{http.MethodPost, "/v1/plan", "plan", tag, search, "The best plans on given devices",
		"As pacer plan. Where none fits the answer is a problem that names the nearest miss and what would help, unless rejected plans are asked for.", []int{404, 422}},
		func(ctx context.Context, in *body[PlanRequest]) (ask.Plans, error) { return s.plan(ctx, &in.Body) })
	register(s, api, m, operation{http.MethodPost, "/v1/curve", "curve", tag, search, "Best throughput of every number of devices",
		"As pacer curve: a surface where there are axes, or accelerators with commas between.", []int{404, 422}},
		func(ctx context.Context, in *body[CurveRequest]) (ask.Curve, error) { return s.curve(ctx, &in.Body) })
	register(s, api, m, operation{http.MethodPost, "/v1/fit-check", "fit-check", tag, search, "Does it fit, by how much, what would make it fit",
		"As pacer fit-check.", []int{404, 422}},
		func(ctx context.Context, in *body[FitCheckRequest]) (ask.FitCheck, error) {
			return s.fitCheck(ctx, &in.Body)
		})
}

// predict answers as pacer predict does.
func (s *Server) predict(ctx context.Context, in *PredictRequest) (ask.Plans, error) {
	start := time.Now()
	row, begin, err := s.predictRow(ctx, in)
	if err != nil {
		return ask.Plans{}, err
	}
	out := ask.Plans{Plans: []ask.PlanRow{row}, Evaluated: 1, Launch: begin}
	if row.Fits {
		out.Fitting = 1
	}
	out.ElapsedS = time.Since(start).Seconds()
	return out, nil
}

// predictRow returns the plan asked about, with what starts it where that was
// asked for.
func (s *Server) predictRow(ctx context.Context, in *PredictRequest) (row ask.PlanRow, start *ask.Launch, err error) {
	in.into(&in.Question)
	if err := ask.CheckFramework(in.Emit); err != nil {
		return row, nil, err
	}
	r, a, err := s.known.resolve(ctx, &in.Question)
	if err == nil {
		err = r.Fix(&in.Question, in.Fixed)
	}
	if err != nil {
		return row, nil, err
	}
	choice, err := a.planner.Fixed(ctx, r.Request)
	if err != nil {
		return row, nil, err
	}
	row = ask.NewPlanRow(choice)
	if in.Explain {
		if row.Explain, err = a.explain(choice.Config); err != nil {
			return row, nil, err
		}
	}
	if in.Emit != "" {
		start, err = ask.NewLaunch(in.Emit, choice)
	}
	return row, start, err
}

// explain says where the time and memory of c go.
func (a *asked) explain(c spec.Config) (map[string]map[string]float64, error) {
	e, err := ask.ExplainerOf(a.predictor, a.family)
	if err != nil {
		return nil, err
	}
	var m *memory.Estimator
	if known, err := a.planner.Memory(c); err == nil {
		m = &known
	}
	out, err := ask.Explain(e, m, c)
	return out.JSON(), err
}

// batch answers many questions on every core.
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
	defer func() { // a goroutine of its own: net/http would not catch it
		if v := recover(); v != nil {
			s.metrics.panics.Inc()
			s.o.Log.Error("panic", "path", "/v1/predict/batch", "value", fmt.Sprint(v))
			out = BatchRow{Problem: newProblem(http.StatusInternalServerError, "", "an internal error, which was logged")}
		}
	}()
	row, begin, err := s.predictRow(ctx, q)
	if err != nil {
		p := problem(err)
		shorten(&p.ErrorModel)
		return BatchRow{Problem: p}
	}
	return BatchRow{Plan: &row, Launch: begin}
}

func noBatch() error {
	return &ask.FieldError{Field: "global_batch", Value: 0, Why: fmt.Sprintf("is not in 1..%d: how many samples per optimizer step?", ask.MaxBatch)}
}

// searched resolves a question about more than one plan.
func (s *Server) searched(ctx context.Context, q *ask.Question, n *Network) (ask.Resolved, *asked, error) {
	n.into(q)
	r, a, err := s.known.resolve(ctx, q)
	if err == nil && q.GlobalBatch == 0 {
		err = noBatch()
	}
	return r, a, err
}

// fitCheck answers as pacer fit-check does.
func (s *Server) fitCheck(ctx context.Context, in *FitCheckRequest) (ask.FitCheck, error) {
	var r ask.Resolved
	var a *asked
	var err error
	if in.Plan != "" {
		in.into(&in.Question)
		if r, a, err = s.known.resolve(ctx, &in.Question); err == nil {
			err = r.Fix(&in.Question, ask.Fixed{Plan: in.Plan, Devices: in.Devices, Shape: in.Shape})
		}
	} else if r, a, err = s.searched(ctx, &in.Question, &in.Network); err == nil {
		r.Devices = in.Devices
		err = ask.InRange("devices", in.Devices, ask.MaxDevices)
	}
	if err != nil {
		return ask.FitCheck{}, err
	}
	report, err := a.planner.FitCheck(ctx, r.Request)
	if err != nil {
		return ask.FitCheck{}, err
	}
	return ask.NewFitCheck(report), nil
}
