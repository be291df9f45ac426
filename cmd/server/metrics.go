package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what Prometheus reads from /metrics.
type metrics struct {
	registry *prometheus.Registry
	seconds  *prometheus.HistogramVec // by route
	requests *prometheus.CounterVec   // by route and status
	inFlight prometheus.Gauge
	refused  *prometheus.CounterVec // by reason
	panics   prometheus.Counter
	stored   *prometheus.CounterVec // measurements, by what became of them
	fits     *prometheus.CounterVec // by result
	fitting  prometheus.Histogram
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pacer_http_request_seconds", Help: "Time to answer, by route.",
			Buckets: []float64{25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 0.1, 0.25, 1, 2.5, 10, 30}}, []string{"route"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pacer_http_requests_total", Help: "Requests answered, by route and status."}, []string{"route", "status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pacer_http_requests_in_flight", Help: "Requests under way."}),
		refused:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pacer_http_refused_total", Help: "Requests refused because too much was under way."}, []string{"limit"}),
		panics:   prometheus.NewCounter(prometheus.CounterOpts{Name: "pacer_panics_total", Help: "Requests whose answer failed by a defect of the program."}),
		stored:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pacer_measurements_total", Help: "Measurements received, by what became of them."}, []string{"result"}),
		fits:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pacer_fits_total", Help: "Performance models fitted, by result."}, []string{"result"}),
		fitting:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pacer_fit_seconds", Help: "Time of one run of fits.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 9)}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "pacer_build_info", Help: "1, with the version.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.registry.MustRegister(m.seconds, m.requests, m.inFlight, m.refused, m.panics, m.stored, m.fits, m.fitting, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// watch counts and times the requests of one route.
func (m *metrics) watch(route string, next http.HandlerFunc) http.HandlerFunc {
	seconds := m.seconds.WithLabelValues(route)
	ok := m.requests.WithLabelValues(route, "200")
	recorders := sync.Pool{New: func() any { return new(recorder) }}
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		m.inFlight.Inc()
		rec := recorders.Get().(*recorder)
		*rec = recorder{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			m.inFlight.Dec()
			seconds.Observe(time.Since(start).Seconds())
			if rec.status == http.StatusOK {
				ok.Inc()
			} else {
				m.requests.WithLabelValues(route, strconv.Itoa(rec.status)).Inc()
			}
			rec.ResponseWriter = nil
			recorders.Put(rec)
		}()
		next(rec, r)
	}
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
