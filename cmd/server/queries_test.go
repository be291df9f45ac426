package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/planner"
)

// The API answers like the planner.
func TestAnswersAreThePlanners(t *testing.T) {
	s := newServer(t, Options{})
	q := query.Request{Model: "llama3-8b", Accelerator: "h100", GlobalBatch: 64}
	r, err := s.resolver.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	pl := planner.New(r.Predictor, planner.Options{})

	at := r
	at.Devices = 16
	ranking, err := pl.Rank(t.Context(), at.Request)
	if err != nil {
		t.Fatal(err)
	}
	alone := query.PlanRows(ranking, 5, false)
	want := slices.Clone(alone)
	if err := query.SetBeatsBest(t.Context(), pl, at.Request, ranking, want); err != nil || query.Ties(want) != 4 {
		t.Errorf("%d plans are as good as the best, %v", query.Ties(want), err)
	}
	got := post[query.Plans](t, s, "/v1/plan", `{"model":"llama3-8b","accelerator":"h100","global_batch":64,"devices":16,"top":5}`)
	if !reflect.DeepEqual(got.Plans, want) || got.Evaluated != ranking.Evaluated {
		t.Errorf("plan: %+v, want %+v", got, want)
	}

	for _, row := range alone {
		body := fmt.Sprintf(`{"model":"llama3-8b","accelerator":"h100","plan":%q}`, row.Plan)
		if got := post[query.Plans](t, s, "/v1/predict", body); len(got.Plans) != 1 || !reflect.DeepEqual(got.Plans[0], row) {
			t.Errorf("predict %s: %+v, want %+v", row.Plan, got.Plans, row)
		}
	}

	curve, err := pl.Curve(t.Context(), at.Request)
	if err != nil {
		t.Fatal(err)
	}
	if got := post[query.Curve](t, s, "/v1/curve", `{"model":"llama3-8b","accelerator":"h100","global_batch":64,"max_devices":16}`); !reflect.DeepEqual(got.Points, query.CurveRows(curve)) {
		t.Errorf("curve: %+v", got)
	}

	report, err := pl.FitCheck(t.Context(), at.Request)
	if err != nil {
		t.Fatal(err)
	}
	if got := post[query.FitCheck](t, s, "/v1/fit-check", `{"model":"llama3-8b","accelerator":"h100","global_batch":64,"devices":16}`); !reflect.DeepEqual(got, query.NewFitCheck(report)) {
		t.Errorf("fit-check: %+v", got)
	}
}

// A prediction over HTTP is the one the server makes of the decoded request.
func TestPredictionsOverHTTP(t *testing.T) {
	s := newServer(t, Options{})
	for _, body := range []string{
		`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full"}`,
		`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8"}`,
		`{"model":"gpt3-175b","accelerator":"a100","plan":"dp=8,tp=8,pp=8,mb=1,ga=8,zero=1","seq":2048,"precision":"fp16"}`,
		`{"model":"gpt3-175b","accelerator":"a100-40gb","plan":"tp=8","node":"p4d"}`,
		`{"model":"mixtral-8x7b","accelerator":"h100","plan":"dp=4,tp=2,ep=2,zero=1","per_node":4,"inter_node_gbps":100,"intra_node_gbytes":50.5}`,
		`{"model":"llama3-8b","accelerator":"v100","plan":"dp=16,zero=3,offload=params,recompute=full","framework":"DeepSpeed"}`,
		`{"model":"llama3-8b","accelerator":"h100","plan":"dp=4,tp=2","shape":"4+4","devices":8,"global_batch":4}`,
		`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full","explain":true}`,
		`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3","family":"hybrid"}`,
		` { "plan" : "dp=8,\u007aero=3", "accelerator" : "h\u0031\u0030\u0030","model":"llama3-8b" , "seq" : 4096 } `,
		`{"model":"mine","accelerator":"h100","plan":"dp=8","network":{"name":"","param_count":1e9,"seq_len":2048}}`,
		`{"model":"llama3-8b","accelerator":"8xH100 SXM5 80GB","plan":"dp=16,zero=3"}`,
		`{"model":"llama3-8b","accelerator":"16xh100","plan":"dp=16,zero=3"}`,
		`{"model":"llama3-8b","accelerator":"mine","plan":"dp=8,zero=3","device":{"name":"","bf16_flops":4e14,"mem_bytes":1e11,"mem_bps":3e12,"host_bps":6e10}}`,
	} {
		w := do(s, http.MethodPost, "/v1/predict", body)
		var in answer.PredictRequest
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		want, err := s.models.Predict(t.Context(), &in)
		if err != nil {
			t.Fatal(body, err)
		}
		var got query.Plans
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
		got.ElapsedS, want.ElapsedS = 0, 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", body, got, want)
		}
	}
}

// Objectives, fronts and probes work as on the command line. The reason why nothing
// fits is in the problem, with the nearest plan and the remedy.
func TestPlanGoals(t *testing.T) {
	s := newServer(t, Options{})
	const known = `{"model":"llama3-8b","accelerator":"h100","devices":32,"top":2,`
	got := post[query.Plans](t, s, "/v1/plan", known+`"global_batch":64,"objective":"min-devices","target_samples_per_s":8,"pareto":true,"probe":2}`)
	if len(got.Plans) != 2 || got.Plans[0].Devices >= 32 || got.Plans[0].SamplesPerS < 8 || len(got.Pareto) == 0 || len(got.Probes) == 0 {
		t.Errorf("%+v", got)
	}
	if got := post[query.Plans](t, s, "/v1/plan", known+`"min_batch":32,"max_batch":256,"objective":"goodput","noise_scale":1000}`); got.Plans[0].GlobalBatch < 32 {
		t.Errorf("%+v", got)
	}
	w := do(s, http.MethodPost, "/v1/plan", `{"model":"llama3.1-405b","accelerator":"h100","devices":8,"global_batch":8}`)
	var p problem.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Infeasible == nil || p.Infeasible.Nearest == nil || p.Infeasible.Remedy == nil || p.Planner != nil {
		t.Errorf("%v: %s", err, w.Body)
	}
}

// A plan request has every option of the command line: the space, an explanation,
// launch files, and whether to migrate a running job.
func TestPlanHasTheFlags(t *testing.T) {
	s := newServer(t, Options{})
	const known = `{"model":"llama3-8b","accelerator":"h100","devices":16,"global_batch":128,"top":0,`
	got := post[query.Plans](t, s, "/v1/plan", known+`"zero":[1,2],"recompute":["none","full"],"offload":["none"],"schedule":["1f1b","zb-h1"],"max_micro_batch":1,"precisions":["bf16","fp8"],
		"explain":true,"emit":"megatron","from":"dp=16,mb=1,ga=8,zero=3","remaining":1e6,"restart_s":60,"storage_gbytes":10,"in_place":false}`)
	seen := map[string]bool{}
	for _, row := range got.Plans {
		for _, part := range strings.Split(row.Plan, ",") {
			seen[part] = true
		}
	}
	for part, want := range map[string]bool{"zero=1": true, "zero=3": false, "recompute=full": true, "recompute=selective": false, "offload=optimizer": false,
		"schedule=zb-h1": true, "schedule=gpipe": false, "mb=2": false, "precision=bf16": true, "precision=fp8": true, "tp=16": false} {
		if seen[part] != want {
			t.Errorf("a plan with %s: %v, want %v", part, seen[part], want)
		}
	}
	if e := got.Plans[0].Explain; e == nil || e.StepS["compute"] <= 0 || e.MemGiB["parameters"] <= 0 || len(e.Stacks) != 1 || e.Stacks[0].Framework != "Megatron Core@0.15" || got.Plans[1].Explain != nil {
		t.Errorf("explained %v, and the second %v", e, got.Plans[1].Explain)
	}
	if l := got.Launch; l == nil || l.Framework != "megatron" || l.File == "" || !strings.Contains(l.Text, "--seq-length") {
		t.Errorf("launch %+v", l)
	}
	if m := got.Move; m == nil || m.RemainSamples != 1e6 || m.To != got.Plans[0].Plan || !(m.CostS >= 60) {
		t.Errorf("move %+v", m)
	}
	if wide := post[query.Plans](t, s, "/v1/plan", known+`"tp_across_nodes":true}`); !slices.ContainsFunc(wide.Plans, func(r query.PlanRow) bool { return strings.Contains(r.Plan, "tp=16") }) {
		t.Error("no tensor parallel group spans nodes")
	}
	if by := post[query.Plans](t, s, "/v1/plan", known+`"objective":"min-devices","target":8}`); by.Plans[0].SamplesPerS < 8 || by.Plans[0].Devices == 16 {
		t.Errorf("for a target: %+v", by.Plans[0])
	}
	one := post[query.Plans](t, s, "/v1/predict", `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full","emit":"torchtitan"}`)
	if one.Launch == nil || one.Launch.Framework != "torchtitan" {
		t.Errorf("launch of one plan: %+v", one.Launch)
	}
}

// A curve request has every option of the command line; lists make it a surface,
// equal to the planner's.
func TestCurveHasTheFlags(t *testing.T) {
	s := newServer(t, Options{})
	const known = `{"model":"llama3-8b","max_devices":8,`
	free := post[query.Curve](t, s, "/v1/curve", known+`"accelerator":"h100","objective":"goodput","min_batch":32,"max_batch":256,"noise_scale":1000,"initial_batch":64,"risk":0.05,"zero":[3]}`)
	for _, p := range free.Points {
		if p.GlobalBatch < 32 || !strings.Contains(p.Plan, "zero=3") || p.GoodputPerS == p.SamplesPerS && p.GlobalBatch > 64 {
			t.Errorf("%+v", p)
		}
	}
	got := post[query.Curve](t, s, "/v1/curve", known+`"global_batch":64,"accelerator":"h100,a100-80gb,t4","cpus":[4,1,4],"host_gib":[64,256],"network_gbps":[400,100]}`)
	type place struct {
		accelerator string
		cpus        int
		host, gbps  float64
	}
	seen := map[place]int{}
	for _, p := range got.Points {
		seen[place{p.Accelerator, p.CPUs, p.HostGiB, p.NetworkGbps}]++
	}
	for _, a := range []string{"H100-80GB-SXM", "A100-80GB-SXM"} {
		for _, cpus := range []int{1, 4} {
			for _, host := range []float64{64, 256} {
				for _, gbps := range []float64{100, 400} {
					if seen[place{a, cpus, host, gbps}] == 0 {
						t.Errorf("no point on %s with %d CPUs, %g GiB, %g Gbit/s", a, cpus, host, gbps)
					}
				}
			}
		}
	}
	small := post[query.Curve](t, s, "/v1/curve", `{"model":"llama3-8b","max_devices":1,"global_batch":64,"accelerator":"h100,t4"}`)
	if len(small.Warnings) != 1 || !strings.Contains(small.Warnings[0], "T4") || len(small.Points) == 0 {
		t.Errorf("%+v", small)
	}
}

func TestBatch(t *testing.T) {
	s := newServer(t, Options{})
	got := post[Batch](t, s, "/v1/predict/batch", `{"questions":[
		{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3"},
		{"model":"nosuch","accelerator":"h100","plan":"dp=8"},
		{"model":"llama3-8b","accelerator":"h100","plan":"tp=7"},
		{"model":"llama3-8b","accelerator":"h100","plan":"dp=16,zero=3"}]}`)
	if len(got.Rows) != 4 || got.Rows[0].Plan == nil || got.Rows[3].Plan == nil || got.Rows[3].Plan.Shape != "8+8" {
		t.Fatalf("%+v", got)
	}
	for i, kind := range map[int]string{1: answer.TypeUnknownName, 2: "urn:pacer:problem:infeasible"} {
		if p := got.Rows[i].Problem; p == nil || p.Type != kind || got.Rows[i].Plan != nil {
			t.Errorf("row %d: %+v", i, got.Rows[i])
		}
	}
}
