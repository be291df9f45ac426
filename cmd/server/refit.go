package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/unfitted"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// refitter refits models, one run at a time: on request, and in the background once
// no measurement has arrived for Options.Refit, or the oldest waits for half as long
// again.
type refitter struct {
	s    *Server
	turn chan struct{} // held while models are fitted
	fits func(context.Context, map[spec.Key]bool) error
	*unfitted.Keys
}

// unfittedFile, beside the store, lists the models that are behind the measurements.
const unfittedFile = "unfitted.json"

func newRefitter(s *Server) *refitter {
	f := &refitter{s: s, turn: make(chan struct{}, 1), Keys: unfitted.New(filepath.Join(filepath.Dir(s.db.Dir()), unfittedFile))}
	f.fits = f.refit
	return f
}

// run fits in the background until ctx ends.
func (f *refitter) run(ctx context.Context) {
	if f.s.o.Refit <= 0 {
		return
	}
	quiet, longest := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	quiet.Stop()
	longest.Stop()
	waits := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.More:
			quiet.Reset(f.s.o.Refit)
			if !waits {
				longest.Reset(f.s.o.Refit * 3 / 2)
			}
			waits = true
			continue
		case <-quiet.C:
		case <-longest.C:
		}
		quiet.Stop()
		longest.Stop()
		waits = false
		f.fitTaken(ctx)
	}
}

// fitTaken fits the marked keys. Where that fails, the models before go on to answer,
// and the keys stay marked.
func (f *refitter) fitTaken(ctx context.Context) {
	keys := f.Take()
	err := f.fits(ctx, keys)
	if err != nil && ctx.Err() == nil {
		f.s.o.Log.Warn("refit: "+err.Error(), "models", len(keys))
	}
	if err := f.Done(err == nil); err != nil {
		f.s.o.Log.Error("refit: "+err.Error(), "file", unfittedFile)
	}
}

// refit fits keys, each with Options.FitFamily and the families it was fitted with
// before.
func (f *refitter) refit(ctx context.Context, keys map[spec.Key]bool) error {
	var failed []error
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
		if err != nil {
			failed = append(failed, fmt.Errorf("family %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// FitStored fits Options.FitFamily to all stored rows.
func (s *Server) FitStored(ctx context.Context) error {
	fam, err := family.Lookup(s.o.FitFamily)
	if err == nil {
		_, err = s.fits.fit(ctx, fam, store.Filter{}, s.o.FitRows, nil)
	}
	return err
}

// fit fits the stored rows that filter selects, only those of keys unless keys is
// nil, on at most n rows each (below 1 = all). The new models answer once it
// returns.
func (f *refitter) fit(ctx context.Context, fam perfmodel.Family, filter store.Filter, n int, keys map[spec.Key]bool) (out FitResponse, err error) {
	ctx, span := f.s.trace.root(ctx, "models.fit")
	defer func() {
		endSpan(span, err)
		if err != nil && ctx.Err() == nil {
			f.s.metrics.fits.WithLabelValues("failed").Inc()
		}
	}()
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return FitResponse{}, ctx.Err()
	}
	start, last := time.Now(), f.LastMark()
	var rows []spec.Measurement
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
	countRows(span, len(rows))
	if len(rows) > 0 && (keys != nil || len(filter.Models)+len(filter.Accelerators) > 0) {
		rows, err = query.WithPool(fam, rows, filter.Sources, &o, func(pool store.Filter) ([]spec.Measurement, error) { return f.s.resolver.Rows(ctx, pool) })
		if err != nil {
			return FitResponse{}, err
		}
	}
	cards, skipped, err := query.FitAll(ctx, fam, f.s.resolver.Fitted, rows, o)
	f.s.renewed(fitted) // where it failed some may have been
	if err != nil {
		return FitResponse{}, err
	}
	if f.s.o.Refit <= 0 && keys == nil && len(filter.Sources) == 0 && fam.Name == f.s.o.FitFamily && len(skipped) == 0 { // else the background fits all families
		if err := f.Unmark(fitted, last); err != nil {
			return FitResponse{}, err
		}
	}
	f.s.metrics.fits.WithLabelValues("fitted").Add(float64(len(cards)))
	f.s.metrics.fits.WithLabelValues("skipped").Add(float64(len(skipped)))
	f.s.metrics.fitting.Observe(time.Since(start).Seconds())
	f.s.o.Log.Info("fitted", "family", fam.Name, "models", len(cards), "skipped", len(skipped), "seconds", time.Since(start).Seconds())
	return FitResponse{query.Fits{Cards: append([]perfmodel.Card{}, cards...), Pooled: query.Pool(cards)}, append([]string{}, skipped...)}, nil
}
