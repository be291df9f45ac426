package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// refitter refits models, one run at a time: on request, and in the background once
// no measurement has arrived for Options.Refit.
type refitter struct {
	s    *Server
	turn chan struct{} // held while models are fitted

	mu   sync.Mutex
	keys map[spec.Key]bool // canonical, measured since they were fitted
	more chan struct{}     // keys have been added
}

func newRefitter(s *Server) *refitter {
	return &refitter{s: s, turn: make(chan struct{}, 1), keys: map[spec.Key]bool{}, more: make(chan struct{}, 1)}
}

// stale marks the keys of rows for the next refit.
func (f *refitter) stale(rows []spec.Measurement) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.keys, query.CanonicalKeys(keysOf(rows)))
	select {
	case f.more <- struct{}{}:
	default: // a signal is pending
	}
}

// take returns and clears the marked keys.
func (f *refitter) take() map[spec.Key]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.keys
	f.keys = map[spec.Key]bool{}
	return out
}

// run fits in the background until ctx ends.
func (f *refitter) run(ctx context.Context) {
	if f.s.o.Refit <= 0 {
		return
	}
	quiet := time.NewTimer(0)
	<-quiet.C
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.more:
			quiet.Reset(f.s.o.Refit)
		case <-quiet.C:
			f.refit(ctx, f.take())
		}
	}
}

// refit fits keys, each with Options.FitFamily and the families it was fitted with
// before.
func (f *refitter) refit(ctx context.Context, keys map[spec.Key]bool) {
	byFamily := map[string]map[spec.Key]bool{f.s.o.FitFamily: keys}
	for _, c := range f.s.resolver.Cards() {
		k := query.CanonicalKey(c.Key)
		if !keys[k] {
			continue
		}
		if byFamily[c.Family] == nil {
			byFamily[c.Family] = map[spec.Key]bool{}
		}
		byFamily[c.Family][k] = true
	}
	for _, name := range slices.Sorted(maps.Keys(byFamily)) {
		fam, err := family.Lookup(name)
		if err == nil {
			_, err = f.fit(ctx, fam, store.Filter{}, f.s.o.FitRows, byFamily[name])
		}
		if err != nil && ctx.Err() == nil {
			f.s.o.Log.Warn("refit: "+err.Error(), "family", name)
		}
	}
}

// fit fits the stored rows that filter selects, only those of keys unless keys is
// nil, on at most n rows each (below 1 = all). The new models answer once it
// returns.
func (f *refitter) fit(ctx context.Context, fam perfmodel.Family, filter store.Filter, n int, keys map[spec.Key]bool) (FitResponse, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return FitResponse{}, ctx.Err()
	}
	start := time.Now()
	var rows []spec.Measurement
	var err error
	if keys == nil {
		rows, err = f.s.resolver.Rows(ctx, filter)
	} else {
		rows, err = f.s.resolver.KeyRows(ctx, keys)
	}
	if err != nil {
		return FitResponse{}, err
	}
	o := perfmodel.PoolOptions{FitOptions: perfmodel.FitOptions{MaxRows: max(n, 0), Seed: f.s.o.Seed}}
	if o.Unfitted, err = query.Analytic(); err != nil {
		return FitResponse{}, err
	}
	fitted := keysOf(rows)
	if len(rows) > 0 && (keys != nil || len(filter.Models)+len(filter.Accelerators) > 0) {
		rows, err = query.WithPool(fam, rows, filter.Sources, &o, func(pool store.Filter) ([]spec.Measurement, error) { return f.s.resolver.Rows(ctx, pool) })
		if err != nil {
			return FitResponse{}, err
		}
	}
	cards, skipped, err := query.FitAll(ctx, fam, f.s.resolver.Fitted, rows, o)
	f.s.models.fitted(fitted) // where it failed some may have been renewed
	if err != nil {
		f.s.metrics.fits.WithLabelValues("failed").Inc()
		return FitResponse{}, err
	}
	f.s.metrics.fits.WithLabelValues("fitted").Add(float64(len(cards)))
	f.s.metrics.fits.WithLabelValues("skipped").Add(float64(len(skipped)))
	f.s.metrics.fitting.Observe(time.Since(start).Seconds())
	f.s.o.Log.Info("fitted", "family", fam.Name, "models", len(cards), "skipped", len(skipped), "seconds", time.Since(start).Seconds())
	return FitResponse{query.Fits{Cards: append([]perfmodel.Card{}, cards...), Pooled: query.Pool(cards)}, append([]string{}, skipped...)}, nil
}
