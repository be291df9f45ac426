package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/cmd/server/snapshot"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Types of the problems with writes.
const (
	typeReplica = "urn:pacer:problem:replica"
	typeLease   = "urn:pacer:problem:no-lease"
)

// runSnapshots keeps a replica current, or puts what a writer has, until ctx ends. lost receives why a writer must end.
func (s *Server) runSnapshots(ctx context.Context, wg *sync.WaitGroup) (lost <-chan error) {
	out := make(chan error, 1)
	switch {
	case s.o.Replica != nil:
		wg.Go(func() { s.o.Replica.Run(ctx, s.applied) })
	case s.o.Writer != nil:
		wg.Go(func() {
			if err := s.o.Writer.Run(ctx); err != nil {
				out <- err
			}
		})
	}
	return out
}

// applied drops what new objects make out of date.
func (s *Server) applied(a snapshot.Applied) {
	if a.Rows.Accelerators {
		s.models.Reset()
	}
	s.models.Measured(slices.Collect(maps.Keys(a.Rows.Keys)))
	s.renewed(a.Models)
}

// mayWrite returns the problem with writes, nil if they can be acknowledged now.
func (s *Server) mayWrite() error {
	switch {
	case s.o.Replica != nil:
		where := "the writer"
		if url := s.o.Replica.Writer(); url != "" {
			where += " at " + url
		}
		return problem.New(http.StatusMisdirectedRequest, typeReplica, "this is a replica, which only answers: ask "+where)
	case s.o.Writer != nil:
		return leaseProblem(s.o.Writer.Valid())
	}
	return nil
}

// acknowledge returns nil when what was written before may be acknowledged: where there are replicas, it is in the object
// store then.
func (s *Server) acknowledge(ctx context.Context) error {
	if s.o.Writer == nil {
		return nil
	}
	return leaseProblem(s.o.Writer.Sync(ctx))
}

// refitAll marks all stored keys for the next refit: what the writer before did not fit is not known here.
func (s *Server) refitAll() error {
	tallies, err := s.resolver.Summary(context.Background())
	if err != nil {
		return err
	}
	var keys []spec.Key
	for _, t := range tallies {
		keys = append(keys, spec.Key{Model: t.Model, Accelerator: t.Accelerator})
	}
	return s.fits.Mark(keys)
}

// renewed drops what models of keys make out of date that were fitted or removed, and announces them to replicas.
func (s *Server) renewed(keys []spec.Key) {
	s.models.Fitted(keys)
	s.drifts.known.Store(false)
	if s.o.Writer != nil {
		s.o.Writer.Fitted()
	}
}

// leaseProblem is the problem of a write that cannot be acknowledged because of err.
func leaseProblem(err error) error {
	if err == nil {
		return nil
	}
	p := problem.New(http.StatusServiceUnavailable, typeLease, fmt.Sprintf("not acknowledged, it may be stored: %v; repeat the request", err))
	if errors.Is(err, snapshot.ErrLost) {
		p.Detail = fmt.Sprintf("not acknowledged: %v; repeat the request there", err)
	}
	p.RetryAfter = "1"
	return p
}

// watchSnapshots adds the age of a replica, or the lease of a writer.
func (m *metrics) watchSnapshots(o *Options) {
	gauge := func(name, help string, of func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, of))
	}
	counter := func(name, help string, labels prometheus.Labels, of func() float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, of))
	}
	if r := o.Replica; r != nil {
		gauge("pacer_replica_age_seconds", "Time since the replica had everything that its writer had acknowledged; +Inf before the first time.", func() float64 {
			age, ok := r.Age()
			if !ok {
				return math.Inf(1)
			}
			return age.Seconds()
		})
		counter("pacer_replica_objects_total", "Objects applied, by kind.", prometheus.Labels{"kind": "full"}, func() float64 { return float64(r.Counts().Full) })
		counter("pacer_replica_objects_total", "Objects applied, by kind.", prometheus.Labels{"kind": "changes"}, func() float64 { return float64(r.Counts().Changes) })
		for _, reason := range snapshot.FailureReasons {
			counter("pacer_replica_failures_total", "Looks for new objects that failed, by reason.", prometheus.Labels{"reason": reason}, func() float64 { return float64(r.Counts().Failed[reason]) })
		}
	}
	if w := o.Writer; w != nil {
		gauge("pacer_lease_seconds", "How long this writer may acknowledge without renewing its lease; 0 or less = it may not.", func() float64 { return w.Lease().Left().Seconds() })
		counter("pacer_snapshot_objects_total", "Objects put for replicas, by result.", prometheus.Labels{"result": "put"}, func() float64 { n, _ := w.Counts(); return float64(n) })
		counter("pacer_snapshot_objects_total", "Objects put for replicas, by result.", prometheus.Labels{"result": "failed"}, func() float64 { _, n := w.Counts(); return float64(n) })
	}
}
