package main

import (
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// otlpReceiver keeps what it receives as OTLP over HTTP.
type otlpReceiver struct {
	*httptest.Server
	mu         sync.Mutex
	spans      []*tracepb.Span
	metrics    map[string]bool
	attributes map[string]bool   // of histograms
	resources  map[string]string // attributes
	faults     []string
}

func newOTLPReceiver(t *testing.T) *otlpReceiver {
	r := &otlpReceiver{metrics: map[string]bool{}, attributes: map[string]bool{}, resources: map[string]string{}}
	receive := func(in proto.Message, use func()) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			r.mu.Lock()
			defer r.mu.Unlock()
			body, err := io.ReadAll(req.Body)
			if err == nil {
				err = proto.Unmarshal(body, in)
			}
			if err != nil || req.Header.Get("Content-Type") != "application/x-protobuf" {
				r.faults = append(r.faults, req.URL.Path+": "+req.Header.Get("Content-Type"))
				return
			}
			use()
		}
	}
	traces, metrics := &collectortraces.ExportTraceServiceRequest{}, &collectormetrics.ExportMetricsServiceRequest{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", receive(traces, func() {
		for _, of := range traces.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				r.resources[a.Key] = a.Value.GetStringValue()
			}
			for _, scope := range of.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
	}))
	mux.HandleFunc("POST /v1/metrics", receive(metrics, func() {
		for _, of := range metrics.ResourceMetrics {
			for _, scope := range of.ScopeMetrics {
				for _, m := range scope.Metrics {
					r.metrics[m.Name] = true
					for _, p := range m.GetHistogram().GetDataPoints() {
						for _, a := range p.Attributes {
							r.attributes[a.Key] = true
						}
					}
				}
			}
		}
	}))
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	return r
}

// paths returns each span of a trace as the names from its root, such as
// "POST /v1/plan > queue".
func (r *otlpReceiver) paths(trace string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	byID := map[string]*tracepb.Span{}
	for _, s := range r.spans {
		if trace == "" || hex.EncodeToString(s.TraceId) == trace {
			byID[string(s.SpanId)] = s
		}
	}
	var out []string
	for _, s := range byID {
		path := s.Name
		for parent := byID[string(s.ParentSpanId)]; parent != nil; parent = byID[string(parent.ParentSpanId)] {
			path = parent.Name + " > " + path
		}
		out = append(out, path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// telemetryCommands returns the commands of the guide that turn on telemetry.
func telemetryCommands(t *testing.T) (commands []string) {
	for line := range strings.SplitSeq(fileText(t, filepath.Join(moduleDir(t), "docs/guides/serve.md")), "\n") {
		if strings.Contains(line, ":4318") && strings.Contains(line, "pacer serve") {
			commands = append(commands, regexp.MustCompile(`\s+#.*`).ReplaceAllString(line, ""))
		}
	}
	if len(commands) != 2 {
		t.Fatalf("the guide has %d commands with a collector, want 2", len(commands))
	}
	return commands
}

// TestE2ETelemetry runs the commands of the guide that send traces and metrics. A
// collector receives the spans of each request, with the id of the access log.
func TestE2ETelemetry(t *testing.T) {
	for _, line := range telemetryCommands(t) {
		t.Run(strings.Fields(line)[0], func(t *testing.T) {
			r := newOTLPReceiver(t)
			before, flags, _ := strings.Cut(strings.ReplaceAll(line, "http://127.0.0.1:4318", r.URL), "pacer serve")
			for _, variable := range strings.Fields(before) {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			log := filepath.Join(t.TempDir(), "access.log")
			s := startServing(t, selfAs(t, "pacer"), t.TempDir(), append(strings.Fields(flags), "--access-log", log, "--refit", "0")...)
			checkTelemetry(t, r, s, log)
		})
	}
}

func checkTelemetry(t *testing.T, r *otlpReceiver, s *serving, log string) {
	const row = `{"config":{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,ga=`
	const end = `,zero=3,recompute=full","shape":"8"},"outcome":"ok","source":"ours","step_sec":[`
	requests := []struct {
		method, path, body string
		status             int
		want               []string // spans below that of the request
	}{
		{"POST", "/v1/measurements", `{"measurements":[` + row + `4` + end + `7.6]},` + row + `8` + end + `15.1]},` + row + `16` + end + `30]}]}`, 200,
			[]string{"post-measurements", "post-measurements > store.put"}},
		{"POST", "/v1/plan", `{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":8}`, 200, []string{"queue", "plan", "plan > store.microbenchmarks"}},
		{"POST", "/v1/predict", `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3"}`, 200, []string{"predict"}},
		{"POST", "/v1/fit", `{"rows":0}`, 200, []string{"queue", "fit", "fit > models.fit", "fit > models.fit > store.query"}},
		{"GET", "/v1/measurements", "", 200, []string{"measurements", "measurements > store.summary"}},
		{"GET", "/v1/measurements/rows", "", 200, []string{"rows", "rows > store.page"}},
		{"GET", "/v1/measurements/export", "", 200, []string{"store.query"}},
		{"GET", "/v1/backup", "", 200, []string{"store.backup"}},
		{"DELETE", "/v1/measurements?source=ours", "", 200, []string{"forget", "forget > store.page", "forget > store.forget", "forget > store.summary"}},
		{"GET", "/v1/nosuch", "", 404, nil},
		{"GET", "/readyz", "", 200, nil},
		{"GET", "/metrics", "", 200, nil},
	}
	const parent = "00f067aa0ba902b7"
	ids := make([]string, len(requests))
	for i, q := range requests {
		ids[i] = strings.Repeat("ab", 15) + hex.EncodeToString([]byte{byte(i + 1)})
		req, err := http.NewRequest(q.method, s.url+q.path, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Traceparent", "00-"+ids[i]+"-"+parent+"-01")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != q.status || answer.Header.Get("X-Request-Id") != ids[i] {
			t.Errorf("%s %s: %d, %v, id %q, %s", q.method, q.path, answer.StatusCode, err, answer.Header.Get("X-Request-Id"), body)
		}
	}
	mustSignal(t, s.cmd.Process, syscall.SIGTERM)
	<-s.done
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	logged := fileText(t, log)
	for i, q := range requests {
		path, _, _ := strings.Cut(q.path, "?")
		var want []string
		name := q.method + " " + path
		switch q.path {
		case "/readyz", "/metrics":
		case "/v1/nosuch":
			want = []string{"GET"}
		default:
			want = []string{name}
			for _, below := range q.want {
				want = append(want, name+" > "+below)
			}
		}
		slices.Sort(want)
		got := r.paths(ids[i])
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s %s: spans %q, want %q", q.method, q.path, got, w)
			}
		}
		if len(want) == 0 && len(got) > 0 {
			t.Errorf("%s: spans %q, want none", q.path, got)
		}
		if !strings.Contains(logged, ids[i]) {
			t.Errorf("%s %s: trace %s is not in the access log", q.method, q.path, ids[i])
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, span := range r.spans {
		if span.Name == "POST /v1/plan" && (hex.EncodeToString(span.ParentSpanId) != parent || !hasAttribute(span, "http.route", "/v1/plan")) {
			t.Errorf("%v is not below %s, or without its route", span, parent)
		}
	}
	for _, name := range []string{"pacer_http_requests_total", "pacer_store_rows", "pacer_queue_seconds", "http.server.request.duration", "process_resident_memory_bytes"} {
		if !r.metrics[name] {
			t.Errorf("no metric %s among %q", name, slices.Sorted(maps.Keys(r.metrics)))
		}
	}
	if r.attributes["server.address"] || r.attributes["server.port"] || !r.attributes["http.route"] {
		t.Errorf("attributes of metrics: %v; clients choose the host", r.attributes)
	}
	if r.resources["service.name"] != "pacer" || r.resources["host.name"] == "" || len(r.faults) > 0 {
		t.Errorf("resources %v, faults %q", r.resources, r.faults)
	}
}

func hasAttribute(span *tracepb.Span, key, value string) bool {
	for _, a := range span.Attributes {
		if a.Key == key && a.Value.GetStringValue() == value {
			return true
		}
	}
	return false
}

// TestE2ETelemetryOff: without an endpoint nothing is sent, and variables turn off each signal. A collector that is
// away, or refuses, delays no answer and is no failure.
func TestE2ETelemetryOff(t *testing.T) {
	for _, c := range []struct {
		name            string
		env             map[string]string
		traces, metrics bool
	}{
		{"no endpoint", nil, false, false},
		{"disabled", map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, false, false},
		{"no traces", map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, false, true},
		{"traces only", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "URL/v1/traces", "OTEL_SERVICE_NAME": "other"}, true, false},
		{"no sample", map[string]string{"OTEL_TRACES_SAMPLER": "always_off", "OTEL_EXPORTER_OTLP_ENDPOINT": "URL"}, false, true},
		{"away", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "100"}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newOTLPReceiver(t)
			for name, value := range c.env {
				t.Setenv(name, strings.Replace(value, "URL", r.URL, 1))
			}
			s := startServing(t, selfAs(t, "pacer"), t.TempDir())
			answer, err := http.Get(s.url + "/v1/measurements")
			if err != nil || answer.StatusCode != 200 || len(answer.Header.Get("X-Request-Id")) != 32 {
				t.Errorf("%v, %v", answer, err)
			}
			answer.Body.Close()
			mustSignal(t, s.cmd.Process, syscall.SIGTERM)
			<-s.done
			if err := s.cmd.Wait(); err != nil {
				t.Error(err)
			}
			if got := len(r.paths("")) > 0; got != c.traces {
				t.Errorf("traces %v, want %v", got, c.traces)
			}
			if got := len(r.metrics) > 0; got != c.metrics {
				t.Errorf("metrics %v, want %v", got, c.metrics)
			}
			if c.traces && r.resources["service.name"] != "other" {
				t.Errorf("resources %v", r.resources)
			}
		})
	}
}
