package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// measured are invented rows of Llama-3-8B on H100: the time of the analytic
// model times a factor.
func measured(t *testing.T, s *Server, factor float64) []spec.Measurement {
	t.Helper()
	m, err := catalog.Model("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	a, err := catalog.Accelerator("h100")
	if err != nil {
		t.Fatal(err)
	}
	node := ask.NodeOf(a)
	p, err := ask.Analytic()
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

// rowsToPost is a MeasurementsRequest with everything by its figures.
type rowsToPost struct {
	Measurements []spec.Measurement `json:"measurements"`
}

func bodyOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const questionOfMeasured = `{"model":"llama3-8b","accelerator":"h100","plan":"dp=16,mb=4,ga=2,zero=3,recompute=full","seq":4096,"framework":"PyTorch FSDP"}`

// Measurements are stored, a model is fitted and served; further ones are posted,
// it is fitted again, and the answer changes: by request, and by itself.
func TestE2EMeasurementsChangeTheAnswer(t *testing.T) {
	s := newServer(t, Options{Refit: 50 * time.Millisecond, FitFamily: "hybrid"})
	before := post[ask.Plans](t, s, "/v1/predict", questionOfMeasured).Plans[0]
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
	fitted := post[Fitted](t, s, "/v1/fit", `{}`)
	if len(fitted.Cards) != 1 || fitted.Cards[0].NFit == 0 {
		t.Fatalf("%+v", fitted)
	}
	slow := post[ask.Plans](t, s, "/v1/predict", questionOfMeasured).Plans[0]
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
	deadline := time.Now().Add(20 * time.Second)
	for {
		now := post[ask.Plans](t, s, "/v1/predict", questionOfMeasured).Plans[0]
		if now.StepTimeSec > 1.2*slow.StepTimeSec {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %g s", now.StepTimeSec)
		}
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	wg.Wait()
	if got := get[Measurements](t, s, "/v1/measurements"); len(got.Measurements) != 1 || got.Measurements[0].Rows != 36 {
		t.Errorf("%+v", got)
	}
}

func get[T any](t *testing.T, s *Server, path string) T {
	t.Helper()
	w := do(s, http.MethodGet, path, "")
	var out T
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s %v", path, w.Code, w.Body, err)
	}
	return out
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

// What was run may be called by name; it is then what a question about the same
// names is about.
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
	r, a, err := s.known.resolve(t.Context(), &ask.Question{Model: "llama3-8b", Accelerator: "h100"})
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

func TestToken(t *testing.T) {
	s := newServer(t, Options{Token: "secret"})
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v1/models", "", 401}, {"/v1/models", "Bearer wrong", 401}, {"/v1/models", "Basic secret", 401}, {"/v1/models", "Bearer secret2", 401},
		{"/v1/models", "Bearer secret", 200}, {"/v1/models", "bearer secret", 200}, {"/metrics", "", 401}, {"/openapi.json", "", 401},
		{"/nosuch", "", 401}, {"/healthz", "", 200}, {"/readyz", "", 200},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://far.example"+c.path, nil)
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		w := httptest.NewRecorder()
		if s.Handler().ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("%s with %q: %d, want %d", c.path, c.header, w.Code, c.status)
		}
	}
}

// Without a token a page of another site reaches nothing, whether it rebinds a
// name to this machine or posts across sites.
func TestOtherSitesAreRefused(t *testing.T) {
	s := newServer(t, Options{})
	for _, c := range []struct {
		host, site string
		status     int
	}{{"localhost", "", 200}, {"127.0.0.1:8470", "", 200}, {"[::1]:8470", "", 200}, {"evil.example", "", 403}, {"localhost.evil.example:80", "", 403}, {"localhost", "cross-site", 403}} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/predict", strings.NewReader(`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8"}`))
		r.Host = c.host
		r.Header.Set("Content-Type", "application/json")
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		w := httptest.NewRecorder()
		if s.Handler().ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

// Beyond the limits requests are refused, and told when to come back.
func TestLimits(t *testing.T) {
	s := newServer(t, Options{MaxRequests: 2, MaxSearches: 1})
	const plan = `{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":8}`
	s.limit.searches <- struct{}{} // somebody searches
	w := do(s, http.MethodPost, "/v1/plan", plan)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), typeOverloaded) {
		t.Errorf("a search too many: %d %s", w.Code, w.Body)
	}
	if w := do(s, http.MethodGet, "/v1/models", ""); w.Code != http.StatusOK {
		t.Errorf("a listing beside a search: %d", w.Code)
	}
	s.limit.searched()
	s.limit.enter()
	s.limit.enter()
	if w := do(s, http.MethodGet, "/v1/models", ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("a request too many: %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if w := do(s, http.MethodGet, path, ""); w.Code != http.StatusOK {
			t.Errorf("%s of a busy server: %d %s", path, w.Code, w.Body)
		}
	}
	s.limit.leave()
	s.limit.leave()
	if w := do(s, http.MethodPost, "/v1/plan", plan); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

func TestTimeout(t *testing.T) {
	s := newServer(t, Options{Timeout: time.Millisecond})
	w := do(s, http.MethodPost, "/v1/curve", `{"model":"llama3.1-405b","accelerator":"h100","max_devices":4096,"global_batch":5040}`)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), typeTimeout) || w.Header().Get("Retry-After") != "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The document names every operation, and its schemas have the fields of the
// answers.
func TestOpenAPI(t *testing.T) {
	s := newServer(t, Options{Version: "1.2.3"})
	doc := get[struct {
		OpenAPI    string `json:"openapi"`
		Info       struct{ Version string }
		Paths      map[string]map[string]any
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}](t, s, "/openapi.json")
	if !strings.HasPrefix(doc.OpenAPI, "3.1") || doc.Info.Version != "1.2.3" {
		t.Errorf("OpenAPI %s of version %s", doc.OpenAPI, doc.Info.Version)
	}
	for path, method := range map[string]string{"/v1/predict": "post", "/v1/predict/batch": "post", "/v1/plan": "post", "/v1/curve": "post", "/v1/fit-check": "post",
		"/v1/models": "get", "/v1/accelerators": "get", "/v1/cards": "get", "/v1/measurements": "get", "/v1/fit": "post",
		"/v1/oracle/predict": "post", "/v1/oracle/best": "post", "/v1/oracle/rank": "post", "/v1/oracle/curve": "post"} {
		if doc.Paths[path][method] == nil {
			t.Errorf("no %s of %s", method, path)
		}
	}
	for schema, fields := range map[string][]string{
		"PredictRequest": {"model", "accelerator", "plan", "shape", "explain", "network", "seq"},
		"PlanRequest":    {"from", "remaining", "restart_s", "storage_gbytes", "in_place", "zero", "recompute", "offload", "schedule", "precisions", "max_micro_batch", "tp_across_nodes", "explain", "emit", "target", "risk", "noise_scale"},
		"CurveRequest":   {"objective", "min_batch", "max_batch", "noise_scale", "initial_batch", "risk", "zero", "cpus", "host_gib", "network_gbps"},
		"Posted":         {"config", "outcome", "step_sec", "peak_bytes", "source"},
		"PostedConfig":   {"model", "plan", "accelerator", "shape", "link", "seq_len", "framework"},
		"Plans":          {"launch", "move", "pareto", "probes"},
		"PlanRow":        {"plan", "step_time_s", "mem_gib", "fits", "warnings", "explain"},
		"OracleRequest":  {"model", "accelerator", "global_batch", "plan"},
	} {
		for _, f := range fields {
			if doc.Components.Schemas[schema].Properties[f] == nil {
				t.Errorf("schema %s has no %s", schema, f)
			}
		}
	}
}

func TestMethodsAndPaths(t *testing.T) {
	s := newServer(t, Options{})
	if w := do(s, http.MethodGet, "/nosuch", ""); w.Code != 404 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(s, http.MethodPut, "/v1/measurements", ""); w.Code != 405 || w.Header().Get("Allow") != "GET, POST" {
		t.Errorf("%d %s, Allow %q", w.Code, w.Body, w.Header().Get("Allow"))
	}
	if w := do(s, http.MethodGet, "/metrics", ""); !strings.Contains(w.Body.String(), `pacer_http_requests_total{route="other",status="404"} 1`) {
		t.Errorf("metrics lack the request before:\n%s", w.Body)
	}
}

// A server that ends answers what is under way, acknowledges no write it does
// not keep, and lets go of the store.
func TestShutdownLosesNothing(t *testing.T) {
	s := newServer(t, Options{Refit: time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()

	rows := measured(t, s, 1)
	var acked sync.Map
	var posted atomic.Int64
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := range 10000 {
				m := rows[i%len(rows)]
				m.Origin = fmt.Sprintf("%d/%d", k, i)
				res, err := http.Post("http://"+l.Addr().String()+"/v1/measurements", "application/json", strings.NewReader(bodyOf(t, rowsToPost{[]spec.Measurement{m}})))
				if err != nil {
					return // it has ended
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode == http.StatusOK {
					acked.Store(m.Origin, true)
					posted.Add(1)
				}
			}
		})
	}
	for posted.Load() < 20 {
		time.Sleep(time.Millisecond)
	}
	end()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if w := do(s, http.MethodGet, "/readyz", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("ready after its end: %d", w.Code)
	}
	var stored []string
	for m, err := range s.db.Query(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, m.Origin)
	}
	slices.Sort(stored)
	acked.Range(func(origin, _ any) bool {
		if _, ok := slices.BinarySearch(stored, origin.(string)); !ok {
			t.Errorf("%s was acknowledged and is not stored", origin)
		}
		return true
	})
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Timeout: -1}, {MaxBody: -1}, {MaxAnswer: -1}, {MaxRequests: -1}, {MaxSearches: -1}, {Refit: -1}, {FitFamily: "nosuch"}} {
		if o.Validate() == nil {
			t.Errorf("%+v is valid", o)
		}
	}
	for addr, want := range map[string]bool{"127.0.0.1:1": false, "localhost:1": false, "[::1]:1": false, "127.3.2.1:0": false, ":80": true, "0.0.0.0:80": true, "10.0.0.1:80": true, "example.com:80": true} {
		if got, err := Guarded(addr); err != nil || got != want {
			t.Errorf("%s: guarded %v %v", addr, got, err)
		}
	}
	if _, err := Guarded("8470"); err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("an address without a host: %v", err)
	}
}
