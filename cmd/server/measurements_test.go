package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler/store"
)

// measured returns invented rows of Llama-3-8B on H100: the time of the analytic model
// times a factor.
func measured(t *testing.T, s *Server, factor float64) []spec.Measurement {
	t.Helper()
	m, a := querytest.Named(t, "llama3-8b", "h100")
	node := query.NodeOf(a)
	p, err := query.Analytic()
	if err != nil {
		t.Fatal(err)
	}
	var out []spec.Measurement
	for _, text := range []string{"dp=8", "dp=16", "dp=32", "dp=4,tp=2", "dp=8,tp=2", "dp=2,tp=4", "dp=4,tp=4", "dp=8,mb=2", "dp=16,mb=2", "dp=8,tp=4", "dp=4,tp=8", "dp=8,mb=4"} {
		plan, err := spec.ParsePlan(text + ",zero=3,recompute=full,ga=2,precision=bf16")
		if err != nil {
			t.Fatal(err)
		}
		c := spec.Config{Model: m, SeqLen: 4096, Plan: plan, Accelerator: a, Shape: spec.Packed(plan.Devices(), node.Devices), Link: node.Link, Framework: "PyTorch FSDP"}
		pred, err := p.Predict(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		sec, _, _ := pred.StepSec(plan.GlobalBatch())
		out = append(out, spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{sec * factor}, Source: "test", Origin: fmt.Sprintf("%s x%g", text, factor)})
	}
	return out
}

func bodyOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const requestOfMeasured = `{"model":"llama3-8b","accelerator":"h100","plan":"dp=16,mb=4,ga=2,zero=3,recompute=full","seq":4096,"framework":"PyTorch FSDP"}`

// TestForgottenIsRefused: a forgotten measurement is counted and not stored when it is posted again.
func TestForgottenIsRefused(t *testing.T) {
	s := newServer(t, Options{})
	rows := bodyOf(t, rowsToPost{measured(t, s, 1.5)})
	post[Stored](t, s, "/v1/measurements", rows)
	rs, err := s.db.Records(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.db.Forget(t.Context(), rs[:5], "throttled"); n != 5 || err != nil {
		t.Fatalf("%d rows forgotten, %v", n, err)
	}
	if again := post[Stored](t, s, "/v1/measurements", rows); again.Forgotten != 5 || again.Unchanged != 7 || again.Added != 0 {
		t.Errorf("sent again: %+v, want 5 forgotten and 7 unchanged", again)
	}
}

// Posted measurements and a refit, on request and in the background, change the
// answer.
func TestE2EMeasurementsChangeTheAnswer(t *testing.T) {
	s := newServer(t, Options{Refit: 50 * time.Millisecond, FitFamily: "hybrid"})
	before := post[query.Plans](t, s, "/v1/predict", requestOfMeasured).Plans[0]
	if before.By != "analytic" {
		t.Fatalf("answered by %s before anything was fitted", before.By)
	}

	got := post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{measured(t, s, 1.5)}))
	if got.Added != 12 || !got.Refit {
		t.Fatalf("%+v", got)
	}
	if again := post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{measured(t, s, 1.5)})); again.Unchanged != 12 || again.Added != 0 {
		t.Fatalf("sent again: %+v", again)
	}
	fitted := post[FitResponse](t, s, "/v1/fit", `{}`)
	if len(fitted.Cards) != 1 || fitted.Cards[0].NFit == 0 {
		t.Fatalf("%+v", fitted)
	}
	slow := post[query.Plans](t, s, "/v1/predict", requestOfMeasured).Plans[0]
	if slow.By == "analytic" || slow.StepTimeSec < 1.25*before.StepTimeSec {
		t.Fatalf("after rows that took 1.5 times as long: %g s by %s, before %g s", slow.StepTimeSec, slow.By, before.StepTimeSec)
	}
	if cards := get[Cards](t, s, "/v1/cards"); len(cards.Cards) != 1 || cards.Cards[0].Model != "Llama3-8B" {
		t.Errorf("%+v", cards)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.fits.run(ctx) })
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{measured(t, s, 4)}))
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{measured(t, s, 4.1)}))
	for deadline := time.Now().Add(spectest.Patience(20 * time.Second)); ; time.Sleep(20 * time.Millisecond) {
		now := post[query.Plans](t, s, "/v1/predict", requestOfMeasured).Plans[0]
		if now.StepTimeSec >= 1.2*slow.StepTimeSec {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after rows that took 4 times as long: %g s, after rows that took 1.5 times as long %g s, %g fits", now.StepTimeSec, slow.StepTimeSec, fitsOf(s))
		}
	}
	cancel()
	wg.Wait()
	if got := get[Measurements](t, s, "/v1/measurements"); len(got.Measurements) != 1 || got.Measurements[0].Rows != 36 {
		t.Errorf("%+v", got)
	}
}

// TestFitByAnyName: a fit and a refit take the rows of all names of a model, and make one fitted model.
func TestFitByAnyName(t *testing.T) {
	s := newServer(t, Options{FitFamily: "hybrid"})
	rows := measured(t, s, 1.5)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{rows[:6]}))
	fitted := post[FitResponse](t, s, "/v1/fit", `{"models":["meta-llama/Meta-Llama-3-8B"],"accelerators":["h100"]}`)
	if len(fitted.Cards) != 1 || fitted.Cards[0].Model != "Llama3-8B" || fitted.Cards[0].NFit+fitted.Cards[0].NHeldOut != 6 {
		t.Fatalf("%+v", fitted)
	}
	s.fits.Take()
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{as(rows[6:], "Meta-Llama-3-8B")}))
	if err := s.fits.refit(t.Context(), s.fits.Take()); err != nil {
		t.Fatal(err)
	}
	if got := get[Cards](t, s, "/v1/cards"); len(got.Cards) != 1 || got.Cards[0].NFit+got.Cards[0].NHeldOut != 12 {
		t.Fatalf("after a refit: %+v", got)
	}
	if got := post[query.Plans](t, s, "/v1/predict", requestOfMeasured).Plans[0]; got.By == "analytic" {
		t.Errorf("answered by %s", got.By)
	}
}

func TestBadMeasurementsStoreNothing(t *testing.T) {
	s := newServer(t, Options{})
	for name, spoil := range map[string]func(*spec.Measurement){
		"no step time":  func(m *spec.Measurement) { m.StepSec = nil },
		"negative time": func(m *spec.Measurement) { m.StepSec = []float64{-1} },
		"outcome":       func(m *spec.Measurement) { m.Outcome = "great" },
		"no source":     func(m *spec.Measurement) { m.Source = "" },
		"no model":      func(m *spec.Measurement) { m.Config.Model.Name = "" },
		"plan":          func(m *spec.Measurement) { m.Config.Plan.DP = -1 },
		"shape":         func(m *spec.Measurement) { m.Config.Shape.Devices = "eight" },
		"memory":        func(m *spec.Measurement) { m.PeakBytes = -1 },
	} {
		rows := measured(t, s, 1)
		spoil(&rows[7])
		w := do(s, http.MethodPost, "/v1/measurements", bodyOf(t, rowsToPost{rows}))
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "measurements[7]") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if got := get[Measurements](t, s, "/v1/measurements"); len(got.Measurements) != 0 {
		t.Errorf("stored: %+v", got)
	}
}

// A posted configuration may use names, which mean the same as in other requests.
func TestMeasurementsByName(t *testing.T) {
	s := newServer(t, Options{})
	const row = `{"measurements":[{"config":{"model":%s,"plan":%s,"accelerator":%s%s},"outcome":"ok","step_sec":[1.5],"source":"mine"}]}`
	full := `{"name":"mine","layers":2,"hidden":8,"heads":2,"ffn":16,"vocab":10,"seq_len":8}`
	for _, body := range []string{
		fmt.Sprintf(row, `"llama3-8b"`, `"dp=8,zero=3"`, `"h100"`, `,"shape":"8"`),
		fmt.Sprintf(row, full, `"dp=16,zero=3"`, `"h100"`, ``),
		fmt.Sprintf(row, `"llama3-8b"`, `{"dp":4,"tp":1,"pp":1,"mb":1,"ga":1}`, `{"name":"mine too"}`, `,"shape":{"devices":"2+2"},"link":{"inter_bps":1e9}`),
		fmt.Sprintf(row, `"mine"`, `"dp=2"`, `"mine too"`, `,"shape":"1+1"`),
	} {
		if got := post[Stored](t, s, "/v1/measurements", body); got.Added != 1 {
			t.Errorf("%s: %+v", body, got)
		}
	}
	r, a, err := s.models.Resolve(t.Context(), &query.Request{Model: "llama3-8b", Accelerator: "h100"})
	if err != nil || a == nil {
		t.Fatal(err)
	}
	byPlan := map[string]spec.Config{}
	for m, err := range s.db.Query(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		byPlan[fmt.Sprintf("%s dp=%d", m.Config.Model.Name, m.Config.Plan.DP)] = m.Config
	}
	if c := byPlan["Llama3-8B dp=8"]; c.Model != r.Model || c.Accelerator != r.Accelerator || c.Link != r.Link || c.Shape.Devices != "8" || c.Plan.Precision != "bf16" {
		t.Errorf("by name: %+v", c)
	}
	if c := byPlan["mine dp=16"]; c.Shape.Devices != "8+8" || c.Model.Layers != 2 {
		t.Errorf("without a shape: %+v", c)
	}
	if c := byPlan["Llama3-8B dp=4"]; c.Link.InterBps != 1e9 || c.Accelerator.Name != "mine too" || c.Plan.Precision != "" {
		t.Errorf("by figures: %+v", c)
	}
	if c := byPlan["mine dp=2"]; c.Model.Layers != 2 || c.Accelerator.Name != "mine too" || c.Link != (spec.Link{}) {
		t.Errorf("by stored names: %+v", c)
	}
	for _, c := range []struct {
		model, plan, accelerator, more string
		status                         int
		says                           string
	}{
		{`"nosuch"`, `"dp=8"`, `"h100"`, ``, 404, `"body.measurements[0].config.model","value":"nosuch"`},
		{`"llama3-8b"`, `"dp=8"`, `"nosuch"`, ``, 404, `"body.measurements[0].config.accelerator","value":"nosuch"`},
		{`"llama3-8b"`, `"dp=x"`, `"h100"`, ``, 422, `"body.measurements[0].config.plan","value":"dp=x"`},
		{`"llama3-8b"`, `"dp=8"`, `"h100"`, `,"shape":"8x"`, 422, `"body.measurements[0].config.shape","value":"8x"`},
		{`"llama3-8b"`, `"dp=8"`, `"h100"`, `,"shape":"4"`, 422, `"body.measurements[0].config.shape","value":"4"`},
		{`5`, `"dp=8"`, `"h100"`, ``, 422, `"body.measurements[0].config.model","value":5`},
		{`""`, `"dp=8"`, `"h100"`, ``, 422, `"body.measurements[0].config.model"`},
		{`{"name":"x","layers":"two"}`, `"dp=8"`, `"h100"`, ``, 422, `"body.measurements[0].config.model.layers","value":"two"`},
		{`{"name":"x","wrong":1}`, `"dp=8"`, `"h100"`, ``, 422, `"body.measurements[0].config.model.wrong"`},
		{`{"layers":2}`, `"dp=8"`, `"h100"`, ``, 422, `expected required property name`},
		{`"llama3-8b"`, `"dp=8"`, `"h100"`, `,"wrong":1`, 422, `"body.measurements[0].config.wrong"`},
	} {
		w := do(s, http.MethodPost, "/v1/measurements", fmt.Sprintf(row, c.model, c.plan, c.accelerator, c.more))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}
