package schedule

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
)

func testResolver(tb testing.TB) *query.Resolver {
	tb.Helper()
	r, err := (&datadir.Dir{Given: tb.TempDir(), Log: io.Discard}).Resolver()
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// testEstimates returns estimates without fitted models, which ask a server if its handler is set, and their warnings.
func testEstimates(t *testing.T, server http.HandlerFunc) (e *estimates, warnings *[]error) {
	t.Helper()
	warnings = new([]error)
	e = &estimates{resolver: testResolver(t), family: query.Auto, limit: 100 * time.Millisecond, planners: map[spec.Key]*planner.Planner{},
		warn: func(err error) { *warnings = append(*warnings, err) }}
	if server == nil {
		return e, warnings
	}
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	var err error
	if e.server, err = remote.New(s.URL, remote.Options{Retries: -1}); err != nil {
		t.Fatal(err)
	}
	return e, warnings
}

func testRequest(t *testing.T, devices int) planner.Request {
	t.Helper()
	m, err := catalog.Model("GPT2-XL")
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Cluster("4x8xA100")
	if err != nil {
		t.Fatal(err)
	}
	g := &c.Groups[0]
	return planner.Request{Model: m, GlobalBatch: 64, Accelerator: g.Accelerator, Link: g.Link, Devices: devices, PerNode: g.Devices, NodeHostBytes: g.HostBytes}
}

// TestServerFails: while a server hangs, is overloaded or broken, models of this process answer. The next request to it
// comes some time later.
func TestServerFails(t *testing.T) {
	hanging := make(chan struct{})
	for name, handler := range map[string]http.HandlerFunc{
		"hangs":               func(_ http.ResponseWriter, r *http.Request) { <-hanging },
		"overloaded":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"wants another token": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"is none of pacer":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"broken":              func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			e, warnings := testEstimates(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				handler(w, r)
			})
			if name == "hangs" {
				t.Cleanup(func() { close(hanging) }) // before the server is closed
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for range 20 {
				if c, err := e.Best(ctx, testRequest(t, 8)); err != nil || !(c.Prediction.Throughput > 0) {
					t.Fatalf("%+v, %v", c, err)
				}
			}
			if asked.Load() != 1 || len(*warnings) != 1 {
				t.Errorf("asked %d times, warnings %v", asked.Load(), *warnings)
			}
			e.silent = time.Now()
			if _, err := e.Best(ctx, testRequest(t, 8)); err != nil || asked.Load() != 2 || len(*warnings) != 1 {
				t.Errorf("later: asked %d times, warnings %v, %v", asked.Load(), *warnings, err)
			}
		})
	}
}

// TestServerRefuses: that no plan fits is an answer of the server, which gets the next request too.
func TestServerRefuses(t *testing.T) {
	var asked atomic.Int32
	e, warnings := testEstimates(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusUnprocessableEntity)
	})
	for range 2 {
		if _, err := e.Best(t.Context(), testRequest(t, 8)); err == nil {
			t.Error("no error")
		}
	}
	if asked.Load() != 2 || len(*warnings) != 0 {
		t.Errorf("asked %d times, warnings %v", asked.Load(), *warnings)
	}
}

// TestEstimatesPerShape: the best plan of each shape is that of the ranking, and shapes are even.
func TestEstimatesPerShape(t *testing.T) {
	made, _ := testEstimates(t, nil)
	e := place.EvenOracle{Oracle: made}
	for _, devices := range []int{4, 8, 12, 16} {
		accept := func(c *spec.Config) bool { return c.Plan.Normal().TP <= 4 }
		got, err := e.PerShape(t.Context(), testRequest(t, devices), accept)
		if err != nil {
			t.Fatal(err)
		}
		want, err := scheduler.PerShape(t.Context(), struct{ scheduler.Oracle }{e}, testRequest(t, devices), accept)
		if err != nil || (len(want) == 0) != (devices == 12) { // 8 and 4 devices on two nodes
			t.Fatalf("%d choices, %v", len(want), err)
		}
		if !slices.EqualFunc(got, want, func(a, b planner.Choice) bool { return a.Config == b.Config }) {
			t.Errorf("%d devices: %v, by the ranking %v", devices, got, want)
		}
		for _, c := range got {
			if c.Config.Shape.Most() != c.Config.Shape.Least() {
				t.Errorf("%d devices: shape %s", devices, c.Config.Shape.Devices)
			}
		}
	}
}

// BenchmarkEstimatesPerShape asks for the plans of a model on 64 devices, as a policy does for its curve.
func BenchmarkEstimatesPerShape(b *testing.B) {
	m, err := catalog.Model("GPT2-XL")
	if err != nil {
		b.Fatal(err)
	}
	c, err := catalog.Cluster("8x8xA100")
	if err != nil {
		b.Fatal(err)
	}
	g := &c.Groups[0]
	resolver := testResolver(b)
	for b.Loop() {
		e := &estimates{resolver: resolver, family: analytic.Family.Name, planners: map[spec.Key]*planner.Planner{}}
		for n := 1; n <= 64; n++ {
			r := planner.Request{Model: m, GlobalBatch: 64, Accelerator: g.Accelerator, Link: g.Link, Devices: n, PerNode: g.Devices, NodeHostBytes: g.HostBytes}
			if _, err := e.PerShape(b.Context(), r, func(*spec.Config) bool { return true }); err != nil {
				b.Fatal(err)
			}
		}
	}
}
