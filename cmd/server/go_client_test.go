package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/planner/remote/api"
)

// good fails the test unless err is nil and the answer is right.
func good[O any](t *testing.T, what string, right func(O) bool) func(O, error) O {
	return func(out O, err error) O {
		t.Helper()
		if err != nil || !right(out) {
			t.Errorf("%s: %+v, %v", what, out, err)
		}
		return out
	}
}

// The Go client has a method for every route, which the server answers.
func TestGoClient(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, Options{Version: "1.2.3", FitRows: -1, AccessLog: slog.New(slog.NewJSONHandler(&log, nil))})
	web := httptest.NewServer(s.Handler())
	base, err := remote.New(web.URL, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := api.New(base), t.Context()
	const model, part, plan = "llama3-8b", "h100", "dp=8,ga=8,zero=3,recompute=full"
	is := func(b bool, err error) {
		t.Helper()
		if !b || err != nil {
			t.Error(b, err)
		}
	}
	is(c.Healthy(ctx))
	is(c.Ready(ctx))
	good(t, "version", func(v api.Version) bool { return v.Version == "1.2.3" && v.Contract == "v1" })(c.Version(ctx))
	good(t, "openapi", func(b json.RawMessage) bool { return json.Valid(b) })(c.OpenAPI(ctx))
	good(t, "metrics", func(b []byte) bool { return bytes.Contains(b, []byte("pacer_http_requests_total")) })(c.Metrics(ctx))
	good(t, "models", func(m api.Models) bool { return len(m.Models) > 100 })(c.Models(ctx))
	good(t, "accelerators", func(m api.Accelerators) bool { return len(m.Accelerators) > 10 })(c.Accelerators(ctx))
	good(t, "frameworks", func(m api.Frameworks) bool { return len(m.Frameworks) > 3 })(c.Frameworks(ctx))

	question := api.PredictRequest{Model: model, Accelerator: part, Plan: plan}
	good(t, "predict", func(p api.Plans) bool { return p.Plans[0].Fits && p.Plans[0].StepTimeS > 0 })(c.Predict(ctx, question))
	good(t, "predict batch", func(b api.Batch) bool {
		return len(b.Rows) == 2 && b.Rows[0].Plan.Fits && b.Rows[1].Problem.Status == 422
	})(
		c.PredictBatch(ctx, api.BatchRequest{Questions: []api.PredictRequest{question, {Model: model, Accelerator: part, Plan: "dp=0"}}}))
	all := 0
	top := good(t, "plan", func(p api.Plans) bool { return len(p.Plans) > 10 && p.Plans[0].Fits })(c.Plan(ctx, api.PlanRequest{Model: model, Accelerator: part, Devices: 16, GlobalBatch: 128, Top: &all}))
	good(t, "curve", func(p api.Curve) bool { return len(p.Points) == 8 })(c.Curve(ctx, api.CurveRequest{Model: model, Accelerator: part, MaxDevices: 8, GlobalBatch: 64}))
	good(t, "recommend", func(r api.Recommendation) bool { return r.Cheapest != nil && len(r.Front) > 0 })(c.Recommend(ctx, api.RecommendRequest{Model: model, Tokens: 1e9, GlobalBatch: 64, Have: "h100:16@2"}))
	good(t, "fit check", func(f api.FitCheck) bool { return f.Fits })(c.FitCheck(ctx, api.FitCheckRequest{Model: model, Accelerator: part, Plan: top.Plans[0].Plan}))
	good(t, "check", func(r api.Check) bool { return r.Plan != nil })(c.Check(ctx, api.CheckRequest{File: "train.sh", Model: model, Accelerator: part,
		Text: "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --bf16"}))
	good(t, "network", func(n api.Network) bool { return n.Network.Layers == 16 })(c.Network(ctx, api.NetworkRequest{Config: map[string]any{"model_type": "llama",
		"num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "vocab_size": 128256, "max_position_embeddings": 4096}}))

	row := api.MeasurementBody{Config: api.ConfigBody{Model: model, Accelerator: part, Plan: plan, Shape: "8"}, Outcome: "ok", Source: "ours", StepSec: []float64{15}}
	good(t, "put", func(s api.Stored) bool { return s.Added == 1 })(c.PutMeasurements(ctx, api.MeasurementsRequest{Measurements: []api.MeasurementBody{row}}))
	page := good(t, "rows", func(r api.Rows) bool {
		return len(r.Rows) == 1 && r.Rows[0].Measurement.Source == "ours" && r.Next == ""
	})(c.RowPage(ctx, remote.Filter{Models: []string{model}}, "", 10))
	if err := base.Export(ctx, io.Discard, "arrow", remote.Filter{}); err != nil {
		t.Error(err)
	}
	if err := base.Backup(ctx, io.Discard); err != nil {
		t.Error(err)
	}
	good(t, "measurements", func(m api.Measurements) bool { return m.Measurements[0].Rows == 1 })(c.Measurements(ctx))
	good(t, "sources", func(m api.Sources) bool { return m.Groups[0].Source == "ours" })(c.Sources(ctx))
	good(t, "nearest", func(n api.Nearest) bool { return n.Compared == 1 })(c.Nearest(ctx, api.NearestRequest{Model: model, Accelerator: part, Plan: plan}))
	good(t, "next", func(n api.CalibrateNext) bool { return len(n.Plans) == 2 && n.Rows == 1 && n.Plans[0].Why != "" })(c.CalibrateNext(ctx, api.CalibrateNextRequest{Model: model, Accelerator: part, Devices: 8, Points: 2}))
	good(t, "verify", func(v api.Verification) bool { return v.OK && v.Rows == 1 })(c.VerifyStore(ctx))
	good(t, "compact", func(v api.Compaction) bool { return v.Rows == 1 })(c.CompactStore(ctx))
	for _, n := range []int{1, 2, 4, 16, 32} {
		row.Config.Plan, row.StepSec[0] = "dp=8,zero=3,recompute=full,ga="+string(must(json.Marshal(n))), 1.9*float64(n)
		good(t, "put", func(s api.Stored) bool { return s.Added == 1 })(c.PutMeasurements(ctx, api.MeasurementsRequest{Measurements: []api.MeasurementBody{row}}))
	}
	good(t, "fit", func(f api.FitResponse) bool { return len(f.Cards) == 1 })(c.Fit(ctx, api.FitRequest{Rows: &all}))
	good(t, "cards", func(m api.Cards) bool { return len(m.Cards) == 1 })(c.Cards(ctx))
	good(t, "forget", func(f api.Forgotten) bool { return f.Rows == 6 && f.DryRun })(c.Forget(ctx, page.Rows[0].Measurement.Source, "a test", true))
	good(t, "campaign", func(p api.Progress) bool { return p.Done == 2 })(c.PostCampaign(ctx, api.Progress{Name: "sweep", Label: "1", Machine: "node", Done: 2}))
	good(t, "campaigns", func(p api.Campaigns) bool { return p.Campaigns[0].Name == "sweep" })(c.Campaigns(ctx))

	begun := good(t, "simulate", func(s api.Simulation) bool { return s.ID != "" })(c.Simulate(ctx, api.SimulationRequest{Workload: "jobs=5,per-hour=20", Cluster: "1x8xH100", Policies: []string{"fifo"}}))
	good(t, "wait", func(s api.Simulation) bool { return s.Status == "done" && len(s.Runs) == 1 })(c.WaitSimulation(ctx, begun.ID))
	good(t, "simulations", func(s api.Simulations) bool { return len(s.Simulations) == 1 })(c.Simulations(ctx))
	good(t, "charts", func(b json.RawMessage) bool { return json.Valid(b) })(c.SimulationCharts(ctx, begun.ID))
	good(t, "report", func(b []byte) bool { return bytes.Contains(b, []byte("<html")) })(c.SimulationReport(ctx, begun.ID))
	good(t, "delete", func(s api.Simulation) bool { return s.ID == begun.ID })(c.DeleteSimulation(ctx, begun.ID))

	askByFigures(t, base)
	var refused *remote.Error
	if _, err := c.Plan(ctx, api.PlanRequest{Model: "nosuch", Accelerator: part, Devices: 8}); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("an unknown model: %v", err)
	}
	web.Close()
	if up, err := c.Healthy(ctx); up || err == nil {
		t.Errorf("without a server: %v, %v", up, err)
	}
	if missing := unanswered(t, s, &log); len(missing) > 0 {
		t.Errorf("no method of the Go client has an answer of %q", missing)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// askByFigures asks the questions by figures.
func askByFigures(t *testing.T, c *remote.Client) {
	t.Helper()
	m, a := measuredRow(t, "dp=8", "x", 1).Config.Model, measuredRow(t, "dp=8", "x", 1).Config.Accelerator
	r := planner.Request{Model: m, Accelerator: a, Link: spec.Link{IntraBps: 450e9, InterBps: 50e9}, PerNode: 8, Devices: 8, GlobalBatch: 64}
	best, err := c.Best(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Predict(t.Context(), best.Config); err != nil || !(p.Throughput > 0) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := c.Curve(t.Context(), r); err != nil || len(p.Points) != 8 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := c.Rank(t.Context(), r); err != nil || len(p.Choices) == 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A wait for a simulation ends with its context.
func TestGoClientWaitEnds(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"1","status":"running"}`)
	}))
	defer web.Close()
	c, err := remote.New(web.URL, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := api.New(c).WaitSimulation(ctx, "1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
