package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pacer-ml/pacer/scheduler/live"
)

// metrics are the metrics of pacer schedule, in Prometheus format.
type metrics struct {
	registry               *prometheus.Registry
	observe, decide, write prometheus.Histogram

	mu       sync.Mutex
	last     live.Report
	observed time.Time // last successful observation
}

func newMetrics() *metrics {
	seconds := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pacer_schedule_" + name + "_seconds", Help: help, Buckets: prometheus.ExponentialBuckets(1e-3, 4, 9)})
	}
	m := &metrics{registry: prometheus.NewRegistry(),
		observe: seconds("observation", "Time to read the state of the cluster."),
		decide:  seconds("decision", "Time of a decision of the policy, with its check."),
		write:   seconds("action", "Time of all actions of one pass over the jobs that has some."),
	}
	m.registry.MustRegister(m.observe, m.decide, m.write, m)
	return m
}

// onTick takes a report over.
func (m *metrics) onTick(r live.Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.observe.Observe(r.Observe.Seconds())
	if r.Decide > 0 {
		m.decide.Observe(r.Decide.Seconds())
	}
	if r.Writes > m.last.Writes {
		m.write.Observe(r.Write.Seconds())
	}
	if m.last = r; r.Observed {
		m.observed = time.Now()
	}
}

// Metrics that are read from the last report.
var (
	decisionsDesc = prometheus.NewDesc("pacer_schedule_decisions_total", "Decisions, by result: made, refused (not possible on the cluster), failed (the policy has an error).", []string{"result"}, nil)
	actionsDesc   = prometheus.NewDesc("pacer_schedule_actions_total", "Writes to the cluster, by result: done or failed. Failed ones are tried again.", []string{"result"}, nil)
	observedDesc  = prometheus.NewDesc("pacer_schedule_observations_total", "Observations of the cluster, by result: done or failed.", []string{"result"}, nil)
	changesDesc   = prometheus.NewDesc("pacer_schedule_job_changes_total", "Changes of jobs: started, stopped, lost (stopped without a decision).", []string{"change"}, nil)
	jobsDesc      = prometheus.NewDesc("pacer_schedule_jobs", "Jobs that pacer schedules, by state.", []string{"state"}, nil)
	offTargetDesc = prometheus.NewDesc("pacer_schedule_jobs_off_target", "Jobs that do not run as decided yet, or are not seen to: drift between decisions and cluster.", nil, nil)
	partlyDesc    = prometheus.NewDesc("pacer_schedule_jobs_partly_done", "Jobs with processes that ended a minute ago or earlier, and others that run on: they may wait for each other.", nil, nil)
	refitsDesc    = prometheus.NewDesc("pacer_schedule_refits_total", "Times that performance models were fitted anew, after which the policy decided with them.", nil, nil)
	faultyDesc    = prometheus.NewDesc("pacer_schedule_faulty", "1 for each object with a fault: a job or node that cannot be used, the planner, the policy or the cluster.", []string{"object"}, nil)
	paceDesc      = prometheus.NewDesc("pacer_schedule_job_pace", "Speed of a running job by the steps that it reports, over that predicted: 1 = as predicted.", []string{"job"}, nil)
	ageDesc       = prometheus.NewDesc("pacer_schedule_state_age_seconds", "Time since the cluster was observed last.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{decisionsDesc, actionsDesc, observedDesc, changesDesc, jobsDesc, offTargetDesc, partlyDesc, refitsDesc, faultyDesc, paceDesc, ageDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := func(d *prometheus.Desc, label string, n int) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), label)
	}
	r := &m.last
	count(decisionsDesc, "made", r.Made)
	count(decisionsDesc, "refused", r.Refused)
	count(decisionsDesc, "failed", r.Failed)
	count(actionsDesc, "done", r.Writes-r.FailedWrites)
	count(actionsDesc, "failed", r.FailedWrites)
	count(observedDesc, "done", r.Ticks-r.FailedObservations)
	count(observedDesc, "failed", r.FailedObservations)
	count(changesDesc, "started", r.Starts)
	count(changesDesc, "stopped", r.Stops)
	count(changesDesc, "lost", r.Lost)
	for _, p := range []live.Phase{live.Held, live.Releasing, live.Released, live.Running, live.Stopping, live.Requeued} {
		out <- prometheus.MustNewConstMetric(jobsDesc, prometheus.GaugeValue, float64(r.Jobs[p]), p.String())
	}
	out <- prometheus.MustNewConstMetric(offTargetDesc, prometheus.GaugeValue, float64(r.OffTarget))
	out <- prometheus.MustNewConstMetric(partlyDesc, prometheus.GaugeValue, float64(r.PartlyDone))
	out <- prometheus.MustNewConstMetric(refitsDesc, prometheus.CounterValue, float64(r.Refits))
	for _, object := range r.Faulty {
		out <- prometheus.MustNewConstMetric(faultyDesc, prometheus.GaugeValue, 1, object)
	}
	for job, pace := range r.Pace {
		out <- prometheus.MustNewConstMetric(paceDesc, prometheus.GaugeValue, pace, string(job))
	}
	if !m.observed.IsZero() {
		out <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, time.Since(m.observed).Seconds())
	}
}

// serve serves /metrics at an address until ctx is done. It says where, on log.
func (m *metrics) serve(ctx context.Context, address string, log io.Writer) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("schedule: --metrics %q: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintf(log, "metrics at http://%s/metrics\n", listener.Addr())
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(log, "warning: metrics:", err)
		}
	}()
	return nil
}
