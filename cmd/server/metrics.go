package server

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel"
)

// metrics are the metrics of /metrics, in Prometheus format.
type metrics struct {
	registry *prometheus.Registry
	seconds  *prometheus.HistogramVec // by route
	requests *prometheus.CounterVec   // by route and status
	inFlight prometheus.Gauge
	refused  *prometheus.CounterVec // by reason
	queued   prometheus.Histogram   // searches and fits, until they start
	cached   prometheus.Counter
	panics   prometheus.Counter
	stored   *prometheus.CounterVec // measurements, by result
	fits     *prometheus.CounterVec // by result
	fitting  prometheus.Histogram
}

func newMetrics(registry *prometheus.Registry, version string) *metrics {
	m := &metrics{
		registry: registry,
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pacer_http_request_seconds", Help: "Time to answer, by route.",
			Buckets: []float64{25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 0.1, 0.25, 1, 2.5, 10, 30}}, []string{"route"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pacer_http_requests_total", Help: "Requests answered, by route and status."}, []string{"route", "status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pacer_http_requests_in_flight", Help: "Requests being answered."}),
		refused:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pacer_http_refused_total", Help: "Requests refused at a limit of concurrency or memory."}, []string{"limit"}),
		queued:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pacer_queue_seconds", Help: "Time that searches and fits wait before they start.", Buckets: prometheus.ExponentialBuckets(1e-4, 4, 10)}),
		cached:   prometheus.NewCounter(prometheus.CounterOpts{Name: "pacer_answer_cache_hits_total", Help: "Searches answered from the cache of answers."}),
		panics:   prometheus.NewCounter(prometheus.CounterOpts{Name: "pacer_panics_total", Help: "Panics while answering requests."}),
		stored:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pacer_measurements_total", Help: "Measurements received, by result."}, []string{"result"}),
		fits:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pacer_fits_total", Help: "Performance models fitted, by result."}, []string{"result"}),
		fitting:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pacer_fit_seconds", Help: "Time of one run of fits.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 9)}),
	}
	for _, result := range []string{"fitted", "skipped", "failed"} { // so that the first one is an increase
		m.fits.WithLabelValues(result)
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "pacer_build_info", Help: "1, with the version.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.registry.MustRegister(m.seconds, m.requests, m.inFlight, m.refused, m.queued, m.cached, m.panics, m.stored, m.fits, m.fitting, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watchStore adds the rows of the store and the state of its disk.
func (m *metrics) watchStore(s *Server) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pacer_store_rows", Help: "Measurements in the store."}, func() float64 {
			tallies, err := s.db.Summary(context.Background())
			if err != nil {
				return math.NaN()
			}
			n := 0
			for _, t := range tallies {
				n += t.Rows
			}
			return float64(n)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pacer_store_read_only", Help: "1 while the disk is nearly full, so that measurements are refused."}, func() float64 {
			if s.db.CheckSpace() != nil {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pacer_searches_waiting", Help: "Searches that wait for a seat."}, func() float64 {
			short, _ := s.limit.short.Length()
			long, _ := s.limit.long.Length()
			return float64(short + long)
		}))
}

// watchRefit adds how far the models are behind the measurements.
func (m *metrics) watchRefit(f *refitter) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pacer_unfitted_models", Help: "Models with measurements that they are not fitted to."},
			func() float64 { n, _ := f.Waiting(); return float64(n) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pacer_unfitted_seconds", Help: "Age of the oldest measurement that no model is fitted to; 0 = all are."},
			func() float64 { _, d := f.Waiting(); return d.Seconds() }))
}

// drifts counts the changes of step times that fitted models have found. Their cards are read again once models changed.
type drifts struct {
	known atomic.Bool
	n     atomic.Int64
}

// watchDrifts adds the changes of step times that fitted models have found.
func (m *metrics) watchDrifts(s *Server) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pacer_drifts", Help: "Changes of step times since some date that fitted models have found, by stack, accelerator and part."}, func() float64 {
		if !s.drifts.known.Swap(true) {
			found := map[perfmodel.Drift]bool{} // models of one accelerator share them
			for _, c := range s.resolver.Cards() {
				for _, d := range c.Drifts {
					found[d] = true
				}
			}
			s.drifts.n.Store(int64(len(found)))
		}
		return float64(s.drifts.n.Load())
	}))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true})
}

// route has the metrics of one path.
type route struct {
	name    string
	seconds prometheus.Observer
	ok      prometheus.Counter // of status 200
}

// route returns the metrics of a path.
func (m *metrics) route(name string) *route {
	return &route{name, m.seconds.WithLabelValues(name), m.requests.WithLabelValues(name, "200")}
}

// count counts a request of t that was answered with status.
func (m *metrics) count(t *route, status int, took time.Duration) {
	t.seconds.Observe(took.Seconds())
	if status == http.StatusOK {
		t.ok.Inc()
		return
	}
	m.requests.WithLabelValues(t.name, strconv.Itoa(status)).Inc()
}

// watched counts and times every request.
func (s *Server) watched(m *router, next http.Handler) http.Handler {
	writers := sync.Pool{New: func() any { return new(responseWriter) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		s.metrics.inFlight.Inc()
		response := writers.Get().(*responseWriter)
		request := s.newRequest(r)
		*response = responseWriter{ResponseWriter: w, request: request, most: s.o.MaxAnswer, memory: lease{budget: s.memory}}
		info := &request.requestInfo
		w.Header().Set("X-Request-Id", info.id)
		defer func() {
			s.metrics.inFlight.Dec()
			route, status, took := m.routeOf(r), response.outcome(r.Context()), time.Since(start)
			s.metrics.count(route, status, took)
			if s.observed() {
				nameSpan(r, info, route.name)
			}
			s.log(r, info, route.name, status, response.bytes, took)
			s.audit(m, r, info, status)
			response.memory.end()
			*response = responseWriter{}
			writers.Put(response)
		}()
		s.answer(response, r, next)
	})
}

// log writes the line of a request to the access log, and that of a 5xx to the log.
func (s *Server) log(r *http.Request, i *requestInfo, route string, status int, bytes int64, took time.Duration) {
	if status >= 500 {
		s.o.Log.Error("request failed", "id", i.id, "method", r.Method, "route", route, "status", status, "error", i.err)
	}
	if s.o.AccessLog == nil {
		return
	}
	s.o.AccessLog.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("id", i.id), slog.String("client", i.client()), slog.String("method", problem.Echo(r.Method)),
		slog.String("route", route), slog.String("path", problem.Echo(r.URL.Path)), slog.Int("status", status), slog.Int64("bytes", bytes),
		slog.Float64("seconds", took.Seconds()), slog.String("agent", problem.Echo(r.UserAgent())))
}

// audit writes the line of a request that changes models, or copies or deletes measurements, to the audit log.
func (s *Server) audit(m *router, r *http.Request, i *requestInfo, status int) {
	if s.o.AuditLog == nil {
		return
	}
	if scope := m.scopeOf(r); scope == access.ScopeFit || scope == access.ScopeAdmin {
		s.o.AuditLog.LogAttrs(r.Context(), slog.LevelInfo, "operation", slog.String("id", i.id), slog.String("token", i.token), slog.String("client", i.client()), slog.String("scope", scope),
			slog.String("method", r.Method), slog.String("path", problem.Echo(r.URL.Path)), slog.String("query", problem.Cut(r.URL.RawQuery, 16*problem.MaxEcho)), slog.Int("status", status))
	}
}

// answer runs next, and answers 500 where next panics.
func (s *Server) answer(w *responseWriter, r *http.Request, next http.Handler) {
	defer w.send()
	defer s.recovered(w, r)
	next.ServeHTTP(w, r)
}
