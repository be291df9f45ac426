package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/cmd/server/page"
)

// newServer returns a server over an empty store.
func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	db, reg := querytest.Open(t)
	s, err := New(db, reg, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// do sends a request to s without a network, from this machine.
func do(s *Server, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	checkContract(s, r, w)
	return w
}

// breaches are the answers of the tests that the OpenAPI document does not describe.
var breaches struct {
	sync.Mutex
	texts []string
}

// TestMain fails where an answer of a test is not as the OpenAPI document says.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, text := range breaches.texts {
		fmt.Fprintln(os.Stderr, "not as in the OpenAPI document:", text)
		code = 1
	}
	os.Exit(code)
}

// checkContract compares an answer with what the OpenAPI document says of its operation.
func checkContract(s *Server, request *http.Request, w *httptest.ResponseRecorder) {
	_, pattern := s.router.Handler(request)
	method, path, known := strings.Cut(pattern, " ")
	if !known || page.Public(strings.TrimSuffix(path, "{$}")) || strings.HasPrefix(path, "/openapi") || strings.HasSuffix(path, "/charts") { // what the page alone uses
		return
	}
	breach := func(text string) {
		breaches.Lock()
		defer breaches.Unlock()
		if len(breaches.texts) < 20 {
			breaches.texts = append(breaches.texts, fmt.Sprintf("%s, status %d: %s", pattern, w.Code, text))
		}
	}
	doc := s.api.OpenAPI()
	item := doc.Paths[path]
	if item == nil {
		breach("no such path")
		return
	}
	op := map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodDelete: item.Delete}[method]
	if op == nil {
		breach("no such method")
		return
	}
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	r := op.Responses[strconv.Itoa(w.Code)]
	if r == nil || kind != "" && r.Content[kind] == nil || kind == "" && len(r.Content)+w.Body.Len() > 0 {
		breach(fmt.Sprintf("no such status with content type %q", kind))
		return
	}
	if !strings.HasSuffix(kind, "json") || w.Header().Get("Content-Encoding") != "" {
		return
	}
	var v any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		breach(err.Error())
		return
	}
	var res huma.ValidateResult
	huma.Validate(doc.Components.Schemas, r.Content[kind].Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, &res)
	for _, err := range res.Errors {
		breach(err.Error())
	}
}

// post sends a request and decodes the response, which must be 200.
func post[T any](t testing.TB, s *Server, path, body string) T {
	t.Helper()
	w := do(s, http.MethodPost, path, body)
	var out T
	if w.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", path, body, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// sink is a ResponseWriter that keeps nothing.
type sink struct {
	header http.Header
	status int
	n      int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }

// BenchmarkPredict is the cost of a prediction without that of a connection.
func BenchmarkPredict(b *testing.B) {
	s := newServer(b, Options{})
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/predict", nil)
	r.Header.Set("Content-Type", "application/json")
	b.ReportAllocs()
	for i := range b.N {
		body := fmt.Appendf(nil, `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,tp=2,mb=1,zero=1,recompute=full","seq":%d}`, 1024+i%100000)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		w := sink{header: http.Header{}}
		if s.Handler().ServeHTTP(&w, r); w.status > 200 || w.n == 0 {
			b.Fatal(w.status)
		}
	}
}

// panicsOf returns how many requests panicked.
func panicsOf(s *Server) float64 { return valueOf(s.metrics.panics) }

// fitsOf returns how many models were fitted.
func fitsOf(s *Server) float64 { return valueOf(s.metrics.fits.WithLabelValues("fitted")) }

func valueOf(c prometheus.Counter) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		return -1
	}
	return m.GetCounter().GetValue()
}
