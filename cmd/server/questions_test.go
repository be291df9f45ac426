package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/planner"
)

// The API answers what the planner does when it is asked directly.
func TestAnswersAreThePlanners(t *testing.T) {
	s := newServer(t, Options{})
	q := ask.Question{Model: "llama3-8b", Accelerator: "h100", GlobalBatch: 64}
	r, err := s.desk.Resolve(t.Context(), q)
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
	want := ask.PlanRows(ranking, 5, false)
	got := post[ask.Plans](t, s, "/v1/plan", `{"model":"llama3-8b","accelerator":"h100","global_batch":64,"devices":16,"top":5}`)
	if !reflect.DeepEqual(got.Plans, want) || got.Evaluated != ranking.Evaluated {
		t.Errorf("plan: %+v, want %+v", got, want)
	}

	for _, row := range want {
		body := fmt.Sprintf(`{"model":"llama3-8b","accelerator":"h100","plan":%q}`, row.Plan)
		if got := post[ask.Plans](t, s, "/v1/predict", body); len(got.Plans) != 1 || !reflect.DeepEqual(got.Plans[0], row) {
			t.Errorf("predict %s: %+v, want %+v", row.Plan, got.Plans, row)
		}
	}

	curve, err := pl.Curve(t.Context(), at.Request)
	if err != nil {
		t.Fatal(err)
	}
	if got := post[ask.Curve](t, s, "/v1/curve", `{"model":"llama3-8b","accelerator":"h100","global_batch":64,"max_devices":16}`); !reflect.DeepEqual(got.Points, ask.CurveRows(curve)) {
		t.Errorf("curve: %+v", got)
	}

	report, err := pl.FitCheck(t.Context(), at.Request)
	if err != nil {
		t.Fatal(err)
	}
	if got := post[ask.FitCheck](t, s, "/v1/fit-check", `{"model":"llama3-8b","accelerator":"h100","global_batch":64,"devices":16}`); !reflect.DeepEqual(got, ask.NewFitCheck(report)) {
		t.Errorf("fit-check: %+v", got)
	}
}

// Predictions that fit, that do not, and bodies only the slow path reads, are
// the same with and without the fast path.
func TestFastPredictionsAreTheSlowOnes(t *testing.T) {
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
	} {
		fast := do(s, http.MethodPost, "/v1/predict", body)
		var in PredictRequest
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		slow, err := s.predict(t.Context(), &in)
		if err != nil {
			t.Fatal(body, err)
		}
		var got ask.Plans
		if err := json.Unmarshal(fast.Body.Bytes(), &got); err != nil || fast.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, fast.Code, fast.Body)
		}
		got.ElapsedS, slow.ElapsedS = 0, 0
		if !reflect.DeepEqual(got, slow) {
			t.Errorf("%s:\n%+v, want\n%+v", body, got, slow)
		}
	}
}

// Objectives, fronts and probes are asked for as on the command line; the reason
// why nothing fits is in the problem, with the nearest plan and the remedy.
func TestPlanGoals(t *testing.T) {
	s := newServer(t, Options{})
	const known = `{"model":"llama3-8b","accelerator":"h100","devices":32,"top":2,`
	got := post[ask.Plans](t, s, "/v1/plan", known+`"global_batch":64,"objective":"min-devices","target_samples_per_s":8,"pareto":true,"probe":2}`)
	if len(got.Plans) != 2 || got.Plans[0].Devices >= 32 || got.Plans[0].SamplesPerS < 8 || len(got.Pareto) == 0 || len(got.Probes) == 0 {
		t.Errorf("%+v", got)
	}
	if got := post[ask.Plans](t, s, "/v1/plan", known+`"min_batch":32,"max_batch":256,"objective":"goodput","noise_scale":1000}`); got.Plans[0].GlobalBatch < 32 {
		t.Errorf("%+v", got)
	}
	w := do(s, http.MethodPost, "/v1/plan", `{"model":"llama3.1-405b","accelerator":"h100","devices":8,"global_batch":8}`)
	var p Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Infeasible == nil || p.Infeasible.Nearest == nil || p.Infeasible.Remedy == nil || p.Planner != nil {
		t.Errorf("%v: %s", err, w.Body)
	}
}

// A plan is asked for with every flag of the command line: from which plans, with
// an explanation, with what starts it, and whether a running job should go over.
func TestPlanHasTheFlags(t *testing.T) {
	s := newServer(t, Options{})
	const known = `{"model":"llama3-8b","accelerator":"h100","devices":16,"global_batch":128,"top":0,`
	got := post[ask.Plans](t, s, "/v1/plan", known+`"zero":[1,2],"recompute":["none","full"],"offload":["none"],"schedule":["1f1b","zb-h1"],"max_micro_batch":1,"precisions":["bf16","fp8"],
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
	if e := got.Plans[0].Explain; e["step_s"]["compute"] <= 0 || e["mem_gib"]["parameters"] <= 0 || got.Plans[1].Explain != nil {
		t.Errorf("explained %v, and the second %v", e, got.Plans[1].Explain)
	}
	if l := got.Launch; l == nil || l.Framework != "megatron" || l.File == "" || !strings.Contains(l.Text, "--seq-length") {
		t.Errorf("launch %+v", l)
	}
	if m := got.Move; m == nil || m.RemainSamples != 1e6 || m.To != got.Plans[0].Plan || !(m.CostS >= 60) {
		t.Errorf("move %+v", m)
	}
	if wide := post[ask.Plans](t, s, "/v1/plan", known+`"tp_across_nodes":true}`); !slices.ContainsFunc(wide.Plans, func(r ask.PlanRow) bool { return strings.Contains(r.Plan, "tp=16") }) {
		t.Error("no tensor parallel group spans nodes")
	}
	if by := post[ask.Plans](t, s, "/v1/plan", known+`"objective":"min-devices","target":8}`); by.Plans[0].SamplesPerS < 8 || by.Plans[0].Devices == 16 {
		t.Errorf("for a target: %+v", by.Plans[0])
	}
	one := post[ask.Plans](t, s, "/v1/predict", `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3,recompute=full","emit":"torchtitan"}`)
	if one.Launch == nil || one.Launch.Framework != "torchtitan" {
		t.Errorf("launch of one plan: %+v", one.Launch)
	}
}

// A curve is asked for with every flag of the command line; lists make it a
// surface, which is the planner's.
func TestCurveHasTheFlags(t *testing.T) {
	s := newServer(t, Options{})
	const known = `{"model":"llama3-8b","max_devices":8,`
	free := post[ask.Curve](t, s, "/v1/curve", known+`"accelerator":"h100","objective":"goodput","min_batch":32,"max_batch":256,"noise_scale":1000,"initial_batch":64,"risk":0.05,"zero":[3]}`)
	for _, p := range free.Points {
		if p.GlobalBatch < 32 || !strings.Contains(p.Plan, "zero=3") || p.GoodputPerS == p.SamplesPerS && p.GlobalBatch > 64 {
			t.Errorf("%+v", p)
		}
	}
	got := post[ask.Curve](t, s, "/v1/curve", known+`"global_batch":64,"accelerator":"h100,a100-80gb,t4","cpus":[4,1,4],"host_gib":[64,256],"network_gbps":[400,100]}`)
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
	small := post[ask.Curve](t, s, "/v1/curve", `{"model":"llama3-8b","max_devices":1,"global_batch":64,"accelerator":"h100,t4"}`)
	if len(small.Warnings) != 1 || !strings.Contains(small.Warnings[0], "T4") || len(small.Points) == 0 {
		t.Errorf("%+v", small)
	}
}

// The plain reader takes only what the schema and encoding/json read alike.
func FuzzPlainQuestion(f *testing.F) {
	s := newServer(f, Options{})
	for _, body := range []string{seedBodies[0], `{"model":"m","accelerator":"a","plan":"p","seq":01}`, `{"model":"m","accelerator":"a","plan":"p","seq":1.0}`,
		`{"model":"m","model":"n","accelerator":"a","plan":"p"}`, ` { "model" : "m" , "accelerator":"a","plan":"p" } `, `{"model":"","accelerator":"a","plan":"p"}`,
		`{"model":"m","accelerator":"a","plan":"p","precision":"0123456789012345678901234567890123"}`} {
		f.Add(body)
	}
	schema := s.api.OpenAPI().Components.Schemas
	kind := schema.Map()["PredictRequest"]
	f.Fuzz(func(t *testing.T, body string) {
		var fast, slow PredictRequest
		if !plainQuestion([]byte(body), &fast) {
			return
		}
		if err := json.Unmarshal([]byte(body), &slow); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if !reflect.DeepEqual(fast, slow) {
			t.Errorf("%q: %+v, want %+v", body, fast, slow)
		}
		var parsed any
		if err := json.Unmarshal([]byte(body), &parsed); err != nil {
			t.Fatal(err)
		}
		res := huma.ValidateResult{}
		if huma.Validate(schema, kind, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, parsed, &res); len(res.Errors) > 0 {
			t.Errorf("%q: %v", body, res.Errors)
		}
	})
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
	for i, kind := range map[int]string{1: typeUnknownName, 2: "urn:pacer:problem:infeasible"} {
		if p := got.Rows[i].Problem; p == nil || p.Type != kind || got.Rows[i].Plan != nil {
			t.Errorf("row %d: %+v", i, got.Rows[i])
		}
	}
}

// Bad input is answered with 4xx and names field and value.
func TestBadInput(t *testing.T) {
	s := newServer(t, Options{MaxBody: 4096})
	deep := strings.Repeat("[", 5000)
	const known = `"model":"llama3-8b","accelerator":"h100"`
	for _, c := range []struct {
		path, body string
		status     int
		says       string // part of the answer
	}{
		{"/v1/predict", ``, 400, "body is required"},
		{"/v1/predict", `{`, 400, "unexpected EOF"},
		{"/v1/predict", `{` + known + `,"plan":"dp=8"} x`, 400, "after"},
		{"/v1/predict", `[]`, 422, "expected object"},
		{"/v1/predict", `null`, 422, "expected object"},
		{"/v1/predict", deep[:4000], 400, "more than 32 levels"},
		{"/v1/predict", strings.Repeat(" ", 5000), 413, "larger than 4096 bytes"},
		{"/v1/predict", `{` + known + `}`, 422, "expected required property plan"},
		{"/v1/predict", `{"model":"nosuch","accelerator":"h100","plan":"dp=8"}`, 404, `"body.model","value":"nosuch"`},
		{"/v1/predict", `{"model":"llama3-8b","accelerator":"nosuch","plan":"dp=8"}`, 404, `"body.accelerator","value":"nosuch"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","node":"nosuch"}`, 404, `"body.node","value":"nosuch"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","family":"nosuch"}`, 422, `"body.family","value":"nosuch"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","family":"rubick"}`, 422, `"body.family","value":"rubick"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=-8"}`, 422, `"body.plan","value":"dp=-8"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=99999999999999999999"}`, 422, `dp=99999999999999999999 is not a whole number`},
		{"/v1/predict", `{` + known + `,"plan":"dp=1048576,tp=1048576"}`, 422, `devices, want at most`},
		{"/v1/predict", `{` + known + `,"plan":"tp=7"}`, 422, "tp=7 does not divide 32 heads"},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","devices":4}`, 422, `"body.devices","value":4`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","devices":-4}`, 422, `"body.devices","value":-4`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","shape":"3+3"}`, 422, `"body.shape","value":"3+3"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","shape":"8x"}`, 422, `"body.shape","value":"8x"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":NaN}`, 400, `"body.seq"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":1e999}`, 400, `"body.seq"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":1e18}`, 422, `"body.seq","value":1000000000000000000`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":0.5}`, 422, `"body.seq","value":0.5`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","seq":"many"}`, 422, `"body.seq","value":"many"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","inter_node_gbps":-1}`, 422, `"body.inter_node_gbps","value":-1`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","precision":"fp7"}`, 422, `"body.precision","value":"fp7"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","wrong":1}`, 422, `"body.wrong"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8","network":{"name":"x","layers":-1,"hidden":8}}`, 422, `layers=-1 is negative`},
		{"/v1/plan", `{` + known + `,"devices":8}`, 422, `"body.global_batch","value":0`},
		{"/v1/plan", `{` + known + `,"devices":0,"global_batch":8}`, 422, `"body.devices","value":0`},
		{"/v1/plan", `{"model":"llama3.1-405b","accelerator":"h100","devices":8,"global_batch":8}`, 422, "the nearest"},
		{"/v1/curve", `{` + known + `,"max_devices":1e9,"global_batch":8}`, 422, `"body.max_devices","value":1000000000`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"zero":[4]}`, 422, `"body.zero[0]","value":4`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"zero":"0,1"}`, 422, `"body.zero","value":"0,1"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"recompute":["some"]}`, 422, `"body.recompute[0]","value":"some"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"precisions":["int8"]}`, 422, `"body.precisions","value":"int8"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"precisions":["fp8"],"precision":"bf16"}`, 422, `"body.precisions","value":"fp8"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"max_micro_batch":0}`, 422, `"body.max_micro_batch","value":0`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"emit":"nosuch"}`, 422, `"body.emit","value":"nosuch"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"from":"dp=x","remaining":1}`, 422, `"body.from","value":"dp=x"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"from":"dp=8"}`, 422, `needs remaining`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"from":"dp=8","remaining":1,"to":"dp=8,zero=3"}`, 422, `"body.from","value":"dp=8"`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"remaining":5}`, 422, `"body.remaining","value":5`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"in_place":true}`, 422, `"body.in_place","value":true`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"target":5,"target_samples_per_s":6}`, 422, `"body.target","value":5`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"target":5}`, 422, `target 5 goes with objective min-devices, and this one is throughput: change it, or leave target out","location":"body.target","value":5`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"objective":"cost","target_samples_per_s":5}`, 422, `"body.target_samples_per_s","value":5`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"noise_scale":500}`, 422, `"body.noise_scale","value":500`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"initial_batch":8}`, 422, `"body.initial_batch","value":8`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"objective":"min-devices"}`, 422, `objective min-devices needs target, how many`},
		{"/v1/plan", `{` + known + `,"devices":8,"global_batch":8,"min_devices":9}`, 422, `min_devices 9 is not in 1..8`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"noise_scale":500}`, 422, `"body.noise_scale","value":500`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8,zero=3,recompute=full","emit":"nosuch"}`, 422, `"body.emit","value":"nosuch"`},
		{"/v1/predict", `{` + known + `,"plan":"dp=8,zero=3,offload=params,recompute=full","emit":"megatron"}`, 422, `cannot express`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"cpus":[0]}`, 422, `"body.cpus[0]","value":0`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"host_gib":[-1]}`, 422, `"body.host_gib[0]","value":-1`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"network_gbps":[100],"inter_node_gbps":400}`, 422, `"body.inter_node_gbps","value":400`},
		{"/v1/curve", `{` + known + `,"max_devices":65536,"global_batch":8,"cpus":[1,2]}`, 422, `"body.max_devices","value":65536`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"global_batch":8,"objective":"cost"}`, 422, `"body.objective","value":"cost"`},
		{"/v1/curve", `{` + known + `,"max_devices":8,"objective":"goodput","min_batch":8,"max_batch":64}`, 422, `noise scale`},
		{"/v1/curve", `{` + known + `,"max_devices":8}`, 422, `"body.global_batch","value":0`},
		{"/v1/curve", `{"model":"llama3-8b","accelerator":"h100,,a100","max_devices":8,"global_batch":8}`, 422, `"body.accelerator","value":"h100,,a100"`},
		{"/v1/fit-check", `{` + known + `,"global_batch":8}`, 422, `"body.devices","value":0`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":-1},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1"},"link":{}}}`, 422, `"body.param_count","value":-1`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x","param_count":1e9},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"abc"},"link":{}}}`, 422, `"body.shape.devices","value":"abc"`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x"},"plan":{"dp":-3,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1"},"link":{}}}`, 422, `"body.config.plan"`},
		{"/v1/oracle/predict", `{"config":{"model":{"name":"x"},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y"},"shape":{"devices":"1"},"link":{}}}`, 422, "not-covered"},
		{"/v1/oracle/best", `{"request":{"model":{"name":"x","param_count":1e9},"accelerator":{"name":"y"},"devices":-1,"global_batch":8}}`, 422, "-1 devices"},
		{"/v1/measurements", `{"measurements":[]}`, 422, "body.measurements"},
		{"/v1/fit", `{"models":["nosuch"]}`, 422, "nosuch"},
		{"/v1/fit", `{"family":"nosuch"}`, 422, `"body.family","value":"nosuch"`},
	} {
		w := do(s, http.MethodPost, c.path, c.body)
		var p huma.ErrorModel
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %.100s: %d %s %v", c.path, c.body, w.Code, w.Body, err)
			continue
		}
		if w.Code != c.status || p.Status != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %.100s: %d %s, want %d with %s", c.path, c.body, w.Code, w.Body, c.status, c.says)
		}
		if w.Body.Len() > 8192 {
			t.Errorf("%s %.100s: an answer of %d bytes", c.path, c.body, w.Body.Len())
		}
	}
	if n := panicsOf(s); n != 0 {
		t.Errorf("%g panics", n)
	}
}

// seedPaths and seedBodies are questions that have an answer, each of which the
// tests below spoil.
var (
	seedPaths = []string{"/v1/predict", "/v1/predict/batch", "/v1/plan", "/v1/curve", "/v1/fit-check", "/v1/measurements", "/v1/fit",
		"/v1/oracle/predict", "/v1/oracle/best", "/v1/oracle/rank", "/v1/oracle/curve"}
	seedBodies = []string{
		`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,tp=2,mb=1,zero=1","seq":2048,"global_batch":8}`,
		`{"questions":[{"model":"llama3-8b","accelerator":"h100","plan":"dp=8"}]}`,
		`{"model":"llama3-8b","accelerator":"h100","devices":2,"global_batch":2,"top":1,"explain":true,"emit":"megatron","from":"dp=2,zero=3","remaining":10,"restart_s":1,"storage_gbytes":1,"in_place":true,"zero":[3],"recompute":["full"],"offload":["none"],"schedule":["1f1b"],"precisions":["bf16"],"max_micro_batch":1,"tp_across_nodes":true}`,
		`{"model":"llama3-8b","accelerator":"h100","max_devices":2,"global_batch":2,"objective":"throughput","risk":0.1,"zero":[3],"cpus":[1],"host_gib":[64],"network_gbps":[100]}`,
		`{"model":"llama3-8b","accelerator":"h100","devices":2,"global_batch":2}`,
		`{"measurements":[{"config":{"model":{"name":"m"},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"a"},"shape":{"devices":"1"},"link":{}},"outcome":"ok","step_sec":[1],"source":"s"}]}`,
		`{"models":["m"]}`,
		`{"config":{"model":{"name":"x","param_count":1e9,"seq_len":8},"plan":{"dp":1,"tp":1,"pp":1,"mb":1,"ga":1},"accelerator":{"name":"y","fp16_flops":1e14,"mem_bytes":1e10,"mem_bps":1e12},"shape":{"devices":"1"},"link":{}}}`,
		`{"request":{"model":{"name":"x","kind":"decoder","layers":2,"hidden":8,"heads":2,"ffn":16,"vocab":10,"seq_len":8},"accelerator":{"name":"y","fp16_flops":1e14,"mem_bytes":1e10,"mem_bps":1e12},"devices":2,"global_batch":2}}`,
	}
)

// Every value of every question is replaced by each of many odd ones: the
// answer is success, the asker's fault or too little time, and never a panic.
func TestOddValues(t *testing.T) {
	s := newServer(t, Options{Timeout: 100 * time.Millisecond, FitTimeout: 100 * time.Millisecond})
	odd := []any{nil, true, "", "x", strings.Repeat("9", 400), 0, -1, 0.5, 7, 1 << 20, 1<<31 - 1, 1 << 40, 1<<62 + 1, -1 << 62, 1e-300, 1e300, []any{}, map[string]any{}, []any{1, "x", nil}}
	n := 0
	for i, path := range seedPaths {
		body := seedBodies[min(i, len(seedBodies)-1)]
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		replaceEach(v, func(set func(any)) {
			for _, o := range odd {
				set(o)
				n++
				spoilt := bodyOf(t, v)
				w := do(s, http.MethodPost, path, spoilt)
				if w.Code != http.StatusOK && w.Code != http.StatusServiceUnavailable && (w.Code < 400 || w.Code >= 500) || !json.Valid(w.Body.Bytes()) {
					t.Errorf("%s %.300s: %d %s", path, spoilt, w.Code, w.Body)
				}
			}
		})
	}
	if n < 1000 || panicsOf(s) != 0 {
		t.Errorf("%d questions, %g panics", n, panicsOf(s))
	}
}

// replaceEach calls use with the setter of every value within v, and puts each
// back afterwards.
func replaceEach(v any, use func(set func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			old := v[k]
			use(func(o any) { v[k] = o })
			v[k] = old
			replaceEach(old, use)
		}
	case []any:
		for i, old := range v {
			use(func(o any) { v[i] = o })
			v[i] = old
			replaceEach(old, use)
		}
	}
}

// No body makes a handler panic, or answer anything but success, the asker's
// fault or too little time.
func FuzzHandlers(f *testing.F) {
	s := newServer(f, Options{MaxBody: 1 << 16, Timeout: 2e9, FitTimeout: 2e9})
	for i, body := range seedBodies {
		f.Add(uint8(i), body)
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		path := seedPaths[int(which)%len(seedPaths)]
		w := do(s, http.MethodPost, path, body)
		switch {
		case w.Code == http.StatusOK, w.Code >= 400 && w.Code < 500, w.Code == http.StatusServiceUnavailable:
		default:
			t.Errorf("%s %q: %d %s", path, body, w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: %s is no JSON", path, body, w.Body)
		}
		if n := panicsOf(s); n != 0 {
			t.Errorf("%s %q: a panic", path, body)
		}
	})
}
