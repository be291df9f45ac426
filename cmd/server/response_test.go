package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
)

// broken is a closed connection: writes fail.
type broken struct {
	sink
	headers int
}

var errBroken = errors.New("broken pipe")

func (b *broken) Write([]byte) (int, error) { return 0, errBroken }
func (b *broken) WriteHeader(int)           { b.headers++ }

// hasCount checks how many requests of a route had an outcome.
func hasCount(t *testing.T, s *Server, route, status string, n float64) {
	t.Helper()
	var m dto.Metric
	if err := s.metrics.requests.WithLabelValues(route, status).Write(&m); err != nil || m.GetCounter().GetValue() != n {
		t.Errorf("%g requests of %s with status %s, want %g; %v", m.GetCounter().GetValue(), route, status, n, err)
	}
}

// A client that disconnects is no defect: nothing is logged or written.
func TestHangingUpIsNoPanic(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for path, body := range map[string]string{
		"/v1/models":  "",
		"/v1/predict": `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8"}`,
		"/v1/plan":    `{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":8}`,
		"/v1/curve":   `{"model":"nosuch","accelerator":"h100","max_devices":8,"global_batch":8}`,
		"/nosuch":     "",
	} {
		method, route := http.MethodGet, path
		if body != "" {
			method = http.MethodPost
		}
		if path == "/nosuch" {
			route = "other"
		}
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := broken{sink: sink{header: http.Header{}}}
		s.Handler().ServeHTTP(&w, r)
		if w.headers != 1 {
			t.Errorf("%s: %d statuses were sent", path, w.headers)
		}
		hasCount(t, s, route, "499", 1)
	}
	if panicsOf(s) != 0 || log.Len() > 0 {
		t.Errorf("%g panics, logged: %s", panicsOf(s), &log)
	}
}

// The request of a client that disconnects ends and counts as 499. A request that the
// server cuts off does not count as 499.
func TestHangingUpEndsASearch(t *testing.T) {
	s := newServer(t, Options{})
	addr, end := serve(t, s)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	go func() {
		for inFlight(t, s) == 0 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		hangUp()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/curve",
		strings.NewReader(`{"model":"llama3.1-405b","accelerator":"h100","max_devices":65536,"global_batch":5040}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if res, err := http.DefaultClient.Do(r); err == nil {
		res.Body.Close()
		t.Fatal("answered in no time")
	}
	end() // waits for the handler
	hasCount(t, s, "/v1/curve", "499", 1)
	if panicsOf(s) != 0 {
		t.Error("a panic")
	}

	cutOff, abort := context.WithCancelCause(t.Context())
	abort(errShutdown)
	if got := (&responseWriter{status: http.StatusServiceUnavailable}).outcome(cutOff); got != http.StatusServiceUnavailable {
		t.Errorf("cut off by the server: %d", got)
	}
}

func inFlight(t *testing.T, s *Server) float64 {
	var m dto.Metric
	if err := s.metrics.inFlight.Write(&m); err != nil {
		t.Error(err)
	}
	return m.GetGauge().GetValue()
}

// through sends a request through watched to a handler.
func through(s *Server, w http.ResponseWriter, h http.HandlerFunc) {
	m := &router{ServeMux: http.NewServeMux(), s: s, other: s.metrics.route("other")}
	s.watched(m, h).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
}

func TestPanicIsAProblem(t *testing.T) {
	s := newServer(t, Options{})
	w := httptest.NewRecorder()
	through(s, w, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK) // is not sent yet
		panic("a defect")
	})
	if w.Code != http.StatusInternalServerError || w.Header().Get("Content-Type") != "application/problem+json" || strings.Contains(w.Body.String(), "defect") || panicsOf(s) != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	hasCount(t, s, "other", "500", 1)
}

// A response that has begun is cut off, so that no client takes it for complete.
func TestPanicAmidAnAnswer(t *testing.T) {
	s := newServer(t, Options{})
	cut := func(h http.HandlerFunc) (v any) {
		defer func() { v = recover() }()
		through(s, httptest.NewRecorder(), h)
		return nil
	}
	if v := cut(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half of"))
		panic("a defect")
	}); v != http.ErrAbortHandler { //nolint:errorlint // the value itself
		t.Errorf("panics with %v", v)
	}
	hasCount(t, s, "other", "500", 1)
	if v := cut(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }); v != http.ErrAbortHandler { //nolint:errorlint // the value itself
		t.Errorf("panics with %v", v)
	}
	hasCount(t, s, "other", "499", 1)
	if panicsOf(s) != 1 {
		t.Errorf("%g panics", panicsOf(s))
	}
}

// A panic after the client has disconnected still counts.
func TestPanicOfItsOwnAfterHangingUp(t *testing.T) {
	s := newServer(t, Options{})
	func() {
		defer func() { _ = recover() }()
		through(s, &broken{sink: sink{header: http.Header{}}}, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("whole"))
			panic("a defect")
		})
	}()
	if panicsOf(s) != 1 {
		t.Errorf("%g panics", panicsOf(s))
	}
}

// A stream that fails counts and is logged as a 5xx: midway it is cut off, before its first byte it is a problem. A
// client that disconnects is no failure of the server.
func TestFailedStream(t *testing.T) {
	failed := errors.New("a damaged block")
	for _, c := range []struct {
		name, status string
		sent         int
		w            http.ResponseWriter
		cut          bool
		lines        int // of the log
	}{
		{"midway", "500", 200 << 10, httptest.NewRecorder(), true, 1},
		{"at the start", "500", 100, httptest.NewRecorder(), false, 1},
		{"no reader", "499", 200 << 10, &broken{sink: sink{header: http.Header{}}}, true, 0},
	} {
		var log, accessLog bytes.Buffer
		s := newServer(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), AccessLog: slog.New(slog.NewJSONHandler(&accessLog, nil))})
		s.router.stream("/v1/failing", access.ScopeRead, nil, func(*http.Request) (string, func(io.Writer) error, error) {
			return "a.file", func(w io.Writer) error {
				if _, err := w.Write(make([]byte, c.sent)); err != nil {
					return err
				}
				return failed
			}, nil
		})
		v := func() (v any) {
			defer func() { v = recover() }()
			s.Handler().ServeHTTP(c.w, httptest.NewRequest(http.MethodGet, "http://localhost/v1/failing", nil))
			return nil
		}()
		if cut := v == http.ErrAbortHandler; cut != c.cut { //nolint:errorlint // the value itself
			t.Errorf("%s: panics with %v", c.name, v)
		}
		hasCount(t, s, "/v1/failing", c.status, 1)
		if !strings.Contains(accessLog.String(), `"status":`+c.status) {
			t.Errorf("%s: access log %s", c.name, &accessLog)
		}
		if n := strings.Count(log.String(), "\n"); n != c.lines || n > 0 && !strings.Contains(log.String(), failed.Error()) {
			t.Errorf("%s: log %s", c.name, &log)
		}
		if r, ok := c.w.(*httptest.ResponseRecorder); ok && !c.cut {
			if r.Code != http.StatusInternalServerError || r.Header().Get("Content-Type") != "application/problem+json" || r.Header().Get("Content-Disposition") != "" {
				t.Errorf("%s: %d %v", c.name, r.Code, r.Header())
			}
		}
	}
}

// Requests that auth refuses count for their route.
func TestRefusedAreCounted(t *testing.T) {
	s := newServer(t, Options{Token: "secret"})
	do(s, http.MethodGet, "/v1/models", "")
	do(s, http.MethodPost, "/v1/plan", "{}")
	do(s, http.MethodGet, "/nosuch", "")
	for _, route := range []string{"/v1/models", "/v1/plan", "other"} {
		hasCount(t, s, route, "401", 1)
	}
}

// A response that is too large becomes a problem with advice.
func TestAnswersAreBounded(t *testing.T) {
	small := newServer(t, Options{MaxAnswer: 2000})
	const plan = `{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":8,"top":%d}`
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodGet, "/v1/models", "", 422}, {http.MethodPost, "/v1/plan", fmt.Sprintf(plan, 100), 422},
		{http.MethodPost, "/v1/plan", fmt.Sprintf(plan, 1), 200}, {http.MethodGet, "/healthz", "", 200},
	} {
		w := do(small, c.method, c.path, c.body)
		if w.Code != c.status || c.status == 422 && (w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), problem.TypeTooLarge)) {
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
		}
	}
	hasCount(t, small, "/v1/models", "422", 1)
	if panicsOf(small) != 0 {
		t.Error("a panic")
	}
}

// large is a request with more plans than answer.MaxRows.
func large(t *testing.T) planner.Request {
	t.Helper()
	m, a := querytest.Named(t, "llama3.1-405b", "h100")
	return planner.Request{Model: m, Accelerator: a, Link: query.NodeOf(a).Link, Devices: 5040, GlobalBatch: 5040, SeqLen: 4096}
}

// A ranking is complete, or a problem where it is too large.
func TestRankingsAreBounded(t *testing.T) {
	s := newServer(t, Options{})
	r := large(t)
	ask := func() *httptest.ResponseRecorder {
		return do(s, http.MethodPost, remote.PathRank, bodyOf(t, remote.PlanRequest{Request: remote.FromRequest(r)}))
	}
	if w := ask(); w.Code != 422 || !strings.Contains(w.Body.String(), problem.TypeTooLarge) {
		t.Errorf("all of them: %d, %d bytes", w.Code, w.Body.Len())
	}
	r.Top = answer.MaxRows + 1
	if w := ask(); w.Code != 422 || !strings.Contains(w.Body.String(), problem.TypeTooLarge) {
		t.Errorf("top %d: %d, %d bytes", r.Top, w.Code, w.Body.Len())
	}
	r.Top, r.TopMisses = 3, answer.MaxRows+1
	if w := ask(); w.Code != 422 || !strings.Contains(w.Body.String(), problem.TypeTooLarge) {
		t.Errorf("%d misses: %d, %d bytes", r.TopMisses, w.Code, w.Body.Len())
	}
	r.TopMisses = 2
	if w := ask(); w.Code != 200 {
		t.Errorf("top %d: %d %s", r.Top, w.Code, w.Body)
	}
	r.Devices = maxPoints + 1
	if w := do(s, http.MethodPost, remote.PathCurve, bodyOf(t, remote.PlanRequest{Request: remote.FromRequest(r)})); w.Code != 422 || !strings.Contains(w.Body.String(), "request.devices") {
		t.Errorf("a curve of %d points: %d %s", r.Devices, w.Code, w.Body)
	}
}

// Every request ends soon after its timeout.
func TestTimeoutEndsEverySearch(t *testing.T) {
	s := newServer(t, Options{Timeout: 20 * time.Millisecond})
	r := large(t)
	r.Devices, r.GlobalBatch = 1<<16, 1<<20
	one := bodyOf(t, remote.PlanRequest{Request: remote.FromRequest(r)})
	r.Devices, r.MinDevices, r.Objective = 1<<20, 1, planner.Cost
	r.GlobalBatch, r.MinBatch, r.MaxBatch = 0, 1, 1<<24
	free := bodyOf(t, remote.PlanRequest{Request: remote.FromRequest(r)})
	r.Devices = 1 << 16
	curve := bodyOf(t, remote.PlanRequest{Request: remote.FromRequest(r)})
	many := `{"questions":[` + strings.Repeat(`{"model":"llama3.1-405b","accelerator":"h100","plan":"dp=5040","explain":true},`, 9999) + `{"model":"llama3.1-405b","accelerator":"h100","plan":"dp=5040"}]}`
	const question = `{"model":"llama3.1-405b","accelerator":"h100","global_batch":1048576,%s}`
	for _, c := range [][2]string{
		{"/v1/plan", fmt.Sprintf(question, `"devices":1048576,"top":0,"rejected":true,"objective":"cost","pareto":true,"probe":100`)},
		{"/v1/curve", fmt.Sprintf(question, `"max_devices":65536`)},
		{"/v1/predict/batch", many},
		{remote.PathRank, one}, {remote.PathBest, free}, {remote.PathRank, free}, {remote.PathCurve, curve},
	} {
		start := time.Now()
		w := do(s, http.MethodPost, c[0], c[1])
		if took := time.Since(start); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), problem.TypeTimeout) || took > spectest.Patience(3*time.Second) {
			t.Errorf("%s %.100s: %d after %v: %.300s", c[0], c[1], w.Code, took, w.Body)
		}
	}
}
