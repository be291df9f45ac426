package server

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// BatchRequest asks about many plans.
type BatchRequest struct {
	Questions []answer.PredictRequest `json:"questions" minItems:"1" maxItems:"10000"`
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

func (s *Server) registerQueries(api huma.API, m *router) {
	const tag = "questions"
	register(s, api, m, operation{http.MethodPost, "/v1/predict", "predict", tag, light, "Step time and memory of a plan",
		"As pacer predict, one row. Where memory does not suffice, fits is false and why has the reason.", []int{404, 422}},
		func(ctx context.Context, in *body[answer.PredictRequest]) (query.Plans, error) {
			return s.models.Predict(ctx, &in.Body)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/predict/batch", "predict-batch", tag, search, "Step time and memory of many plans",
		"A row per question, in order: a plan or a problem.", nil},
		func(ctx context.Context, in *body[BatchRequest]) (Batch, error) { return s.batch(ctx, in.Body) })
	register(s, api, m, operation{http.MethodPost, "/v1/plan", "plan", tag, search, "The best plans on given devices",
		"As pacer plan. Where no plan fits, the response is a problem with the nearest plan and a remedy, unless the request has rejected.", []int{404, 422}},
		func(ctx context.Context, in *body[answer.PlanRequest]) (query.Plans, error) {
			return s.models.Plan(ctx, &in.Body)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/curve", "curve", tag, search, "Best throughput on every number of devices",
		"As pacer curve. With axes, or several accelerators separated by commas, the response is a surface.", []int{404, 422}},
		func(ctx context.Context, in *body[answer.CurveRequest]) (query.Curve, error) {
			return s.models.Curve(ctx, &in.Body)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/recommend", "recommend", tag, search, "How many devices to train on, and their type, with time and cost",
		"As pacer recommend. The accelerators are those of have.", []int{404, 422}},
		func(ctx context.Context, in *body[answer.RecommendRequest]) (query.Recommendation, error) {
			return s.models.Recommend(ctx, &in.Body)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/fit-check", "fit-check", tag, search, "Whether a plan fits, its headroom, and changes that make it fit",
		"As pacer fit-check.", []int{404, 422}},
		func(ctx context.Context, in *body[answer.FitCheckRequest]) (query.FitCheck, error) {
			return s.models.FitCheck(ctx, &in.Body)
		})
	register(s, api, m, operation{http.MethodPost, "/v1/check", "check", tag, search, "Read a launch file: whether it fits, its speed, and what would be better",
		"As pacer check. What neither the file nor the request says is in missing; then there is no plan.", []int{404, 422}},
		func(ctx context.Context, in *body[answer.CheckRequest]) (query.Check, error) {
			return s.models.Check(ctx, &in.Body)
		})
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

func (s *Server) batchRow(ctx context.Context, q *answer.PredictRequest) (out BatchRow) {
	defer func() { // net/http does not recover panics of other goroutines
		if v := recover(); v != nil {
			s.metrics.panics.Inc()
			s.o.Log.Error("panic", "id", requestOf(ctx).id, "path", "/v1/predict/batch", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
			out = BatchRow{Problem: newProblem(http.StatusInternalServerError, "", "an internal error, which was logged")}
		}
	}()
	row, begin, err := s.models.PredictRow(ctx, q)
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
