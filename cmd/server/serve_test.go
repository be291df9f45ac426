package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// rowsToPost is a MeasurementsRequest without names.
type rowsToPost struct {
	Measurements []spec.Measurement `json:"measurements"`
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

// Requests beyond the limits are refused with Retry-After.
func TestLimits(t *testing.T) {
	s := newServer(t, Options{MaxRequests: 3, MaxSearches: 1, Timeout: 2 * time.Second})
	const plan = `{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":8}`
	leave, err := s.limit.short.Acquire(t.Context(), 1, 1) // the only seat is taken
	if err != nil {
		t.Fatal(err)
	}
	w := do(s, http.MethodPost, "/v1/plan", plan)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), problem.TypeOverloaded) {
		t.Errorf("a search too many: %d %s", w.Code, w.Body)
	}
	if w := do(s, http.MethodGet, "/v1/models", ""); w.Code != http.StatusOK {
		t.Errorf("a listing beside a search: %d", w.Code)
	}
	leave(time.Millisecond)
	for range 3 {
		s.limit.enter()
	}
	if w := do(s, http.MethodGet, "/v1/models", ""); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("a request too many: %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if w := do(s, http.MethodGet, path, ""); w.Code != http.StatusOK {
			t.Errorf("%s of a busy server: %d %s", path, w.Code, w.Body)
		}
	}
	for range 3 {
		s.limit.leave()
	}
	if w := do(s, http.MethodPost, "/v1/plan", plan); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

func TestTimeout(t *testing.T) {
	s := newServer(t, Options{Timeout: time.Millisecond})
	w := do(s, http.MethodPost, "/v1/curve", `{"model":"llama3.1-405b","accelerator":"h100","max_devices":4096,"global_batch":5040}`)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), problem.TypeTimeout) || w.Header().Get("Retry-After") != "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The document has every operation, and its schemas the fields of the responses.
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
	for path, want := range map[string][2]string{"/v1/models": {"get", "304"}, "/v1/fit": {"post", "507"}, "/v1/measurements": {"delete", "507"}, "/v1/backup": {"get", "200"},
		"/v1/measurements/export": {"get", "404"}, "/v1/simulations/{id}/report": {"get", "404"}, "/healthz": {"get", "200"}, "/readyz": {"get", "503"}, "/metrics": {"get", "401"}} {
		if op, _ := doc.Paths[path][want[0]].(map[string]any); op == nil || op["responses"].(map[string]any)[want[1]] == nil {
			t.Errorf("%s of %s has no status %s", want[0], path, want[1])
		}
	}
	for schema, fields := range map[string][]string{
		"PredictRequest":  {"model", "accelerator", "plan", "shape", "explain", "network", "seq"},
		"PlanRequest":     {"from", "remaining", "restart_s", "storage_gbytes", "in_place", "zero", "recompute", "offload", "schedule", "precisions", "max_micro_batch", "tp_across_nodes", "explain", "emit", "target", "risk", "noise_scale"},
		"CurveRequest":    {"objective", "min_batch", "max_batch", "noise_scale", "initial_batch", "risk", "zero", "cpus", "host_gib", "network_gbps"},
		"MeasurementBody": {"config", "outcome", "step_sec", "peak_bytes", "source"},
		"ConfigBody":      {"model", "plan", "accelerator", "shape", "link", "seq_len", "framework"},
		"Plans":           {"launch", "move", "pareto", "probes"},
		"PlanRow":         {"plan", "step_time_s", "mem_gib", "fits", "warnings", "explain"},
		"OracleRequest":   {"model", "accelerator", "global_batch", "plan"},
	} {
		for _, f := range fields {
			if doc.Components.Schemas[schema].Properties[f] == nil {
				t.Errorf("schema %s has no %s", schema, f)
			}
		}
	}
}

// The document keeps what the linters redocly and spectral want of it by default.
func TestOpenAPIIsTidy(t *testing.T) {
	s := newServer(t, Options{})
	text := do(s, http.MethodGet, "/openapi.json", "").Body.String()
	doc := get[struct {
		Info struct {
			License struct{ Name, Identifier string }
			Contact struct{ URL string }
		}
		Components struct{ Schemas map[string]any }
	}](t, s, "/openapi.json")
	if doc.Info.License.Identifier != "Apache-2.0" || doc.Info.License.Name == "" || doc.Info.Contact.URL == "" {
		t.Errorf("the document has no license or no contact: %+v", doc.Info)
	}
	for name := range doc.Components.Schemas {
		if !strings.Contains(text, `"#/components/schemas/`+name+`"`) {
			t.Errorf("nothing refers to the schema %s", name)
		}
	}
	if strings.Contains(text, "patternDescription") || len(doc.Components.Schemas) == 0 {
		t.Error("the document has a key that OpenAPI does not know, or no schemas")
	}
	older := do(s, http.MethodGet, "/openapi-3.0.json", "").Body.String()
	for _, unknown := range []string{`"identifier"`, `"contentMediaType"`, `"contentEncoding"`, `"examples"`, `"const"`, `"type":[`, `"type":"null"`, `"openapi":"3.1`} {
		if strings.Contains(older, unknown) {
			t.Errorf("the document of OpenAPI 3.0 has %s", unknown)
		}
	}
	var v any
	if err := json.Unmarshal([]byte(older), &v); err != nil {
		t.Fatal(err)
	}
	eachObject(v, func(o map[string]any) {
		if o["$ref"] != nil && len(o) > 1 {
			t.Errorf("the document of OpenAPI 3.0 has a reference with keys beside it: %v", o)
		}
	})
	for path, item := range s.api.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Delete} {
			if op != nil && slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.Schema.Nullable }) {
				t.Errorf("%s: a parameter may be null", path)
			}
			if op != nil && op.RequestBody != nil && len(op.RequestBody.Content) != 1 {
				t.Errorf("%s: bodies of %d types", path, len(op.RequestBody.Content))
			}
		}
	}
	const row = `{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8","shape":"8"},"outcome":"oom","source":"ours"}`
	if w := request(s, http.MethodPost, "http://localhost/v1/measurements", `{"measurements":[`+row+`]}`, "Idempotency-Key", "é"); !strings.Contains(w.Body.String(), "printable ASCII") {
		t.Errorf("the problem does not say what a key may be: %s", w.Body)
	}
}

// eachObject calls use with every object within v.
func eachObject(v any, use func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		use(v)
		for _, of := range v {
			eachObject(of, use)
		}
	case []any:
		for _, of := range v {
			eachObject(of, use)
		}
	}
}

// The version has the commit that the server was built from.
func TestCommit(t *testing.T) {
	build := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.modified", Value: "false"}}}
	clean := commit(build, true)
	build.Settings[1].Value = "true"
	if changed := commit(build, true); clean != "0123abc" || changed != "0123abc+changes" || commit(&debug.BuildInfo{}, true)+commit(nil, false) != "" {
		t.Errorf("%q, with changes %q", clean, changed)
	}
}

func TestMethodsAndPaths(t *testing.T) {
	s := newServer(t, Options{})
	if w := do(s, http.MethodGet, "/nosuch", ""); w.Code != 404 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(s, http.MethodPut, "/v1/measurements", ""); w.Code != 405 || w.Header().Get("Allow") != "DELETE, GET, POST" {
		t.Errorf("%d %s, Allow %q", w.Code, w.Body, w.Header().Get("Allow"))
	}
	if w := do(s, http.MethodGet, "/metrics", ""); !strings.Contains(w.Body.String(), `pacer_http_requests_total{route="other",status="404"} 1`) {
		t.Errorf("metrics lack the request before:\n%s", w.Body)
	}
}

// Shutdown finishes running requests, keeps every acknowledged write, and releases the
// store.
func TestShutdownLosesNothing(t *testing.T) {
	s := newServer(t, Options{Refit: time.Millisecond})
	addr, end := serve(t, s)
	rows := measured(t, s, 1)
	var acked sync.Map
	var posted atomic.Int64
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := range 10000 {
				m := rows[i%len(rows)]
				m.Origin = fmt.Sprintf("%d/%d", k, i)
				res, err := http.Post("http://"+addr+"/v1/measurements", "application/json", strings.NewReader(bodyOf(t, rowsToPost{[]spec.Measurement{m}})))
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
