package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
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
	file string        // holds keys, so that they outlive the process
	fits func(context.Context, map[spec.Key]bool) error

	mu      sync.Mutex
	keys    map[spec.Key]int  // canonical, measured since they were fitted, each with the number of its last mark
	marks   int               // number of the last one
	storing map[spec.Key]int  // requests that store measurements of a key
	fitting map[spec.Key]bool // taken, and not fitted yet
	since   time.Time         // when the first of keys was measured
	more    chan struct{}     // keys have been added
}

// unfittedFile, beside the store, lists the keys that were measured since they were
// fitted.
const unfittedFile = "unfitted.json"

func newRefitter(s *Server) *refitter {
	f := &refitter{s: s, turn: make(chan struct{}, 1), keys: map[spec.Key]int{}, storing: map[spec.Key]int{}, more: make(chan struct{}, 1),
		file: filepath.Join(filepath.Dir(s.db.Dir()), unfittedFile)}
	f.fits = f.refit
	return f
}

// load marks the keys that an earlier process left unfitted.
func (f *refitter) load() error {
	b, err := os.ReadFile(f.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var keys []spec.Key
	if err == nil {
		err = json.Unmarshal(b, &keys)
	}
	if err != nil {
		return fmt.Errorf("server: %s: %w: remove it; the models that it lists are then fitted by /v1/fit only", f.file, err)
	}
	return f.stale(keys)
}

// save writes the keys that are not fitted to the file. The caller holds mu.
func (f *refitter) save() error {
	all := slices.Concat(slices.Collect(maps.Keys(f.keys)), slices.Collect(maps.Keys(f.fitting)), slices.Collect(maps.Keys(f.storing)))
	if len(all) == 0 {
		if err := os.Remove(f.file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	slices.SortFunc(all, perfmodel.CompareKeys)
	keys := slices.Compact(all)
	return atomicfile.Write(f.file, 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(keys) })
}

// stale marks keys for the next refit. They are on disk when it returns.
func (f *refitter) stale(keys []spec.Key) error {
	if len(keys) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) == 0 {
		f.since = time.Now()
	}
	listed := true
	f.marks++
	for k := range query.CanonicalKeys(keys) {
		listed = listed && f.listed(k)
		f.keys[k] = f.marks
	}
	select {
	case f.more <- struct{}{}:
	default: // a signal is pending
	}
	if listed {
		return nil
	}
	return f.save()
}

// listed reports whether the file has a key. The caller holds mu.
func (f *refitter) listed(k spec.Key) bool { return f.keys[k] > 0 || f.fitting[k] || f.storing[k] > 0 }

// expect lists keys in the file before measurements of them are stored: a process that is killed meanwhile leaves none
// unfitted. stored must be called after.
func (f *refitter) expect(keys []spec.Key) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := true
	for k := range query.CanonicalKeys(keys) {
		listed = listed && f.listed(k)
		f.storing[k]++
	}
	if listed {
		return nil
	}
	return f.save()
}

// stored marks the keys of expect for the next refit where measurements of them have changed.
func (f *refitter) stored(keys []spec.Key, changed bool) error {
	var err error
	if changed {
		err = f.stale(keys)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := true
	for k := range query.CanonicalKeys(keys) {
		if f.storing[k]--; f.storing[k] == 0 {
			delete(f.storing, k)
			listed = listed && f.listed(k)
		}
	}
	if !listed {
		err = errors.Join(err, f.save())
	}
	return err
}

// waiting returns the number of marked keys and how long the first has been marked.
func (f *refitter) waiting() (keys int, oldest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) == 0 {
		return 0, 0
	}
	return len(f.keys), time.Since(f.since)
}

// take returns and clears the marked keys. They stay in the file until they are
// fitted.
func (f *refitter) take() map[spec.Key]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fitting = map[spec.Key]bool{}
	for k := range f.keys {
		f.fitting[k] = true
	}
	clear(f.keys)
	return f.fitting
}

// unmark removes the marks of keys that were fitted, but for those after mark number last.
func (f *refitter) unmark(fitted []spec.Key, last int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range query.CanonicalKeys(fitted) {
		if f.keys[k] <= last {
			delete(f.keys, k)
		}
	}
	return f.save()
}

// lastMark returns the number of the last mark.
func (f *refitter) lastMark() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks
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
		case <-f.more:
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
	keys := f.take()
	err := f.fits(ctx, keys)
	if err != nil && ctx.Err() == nil {
		f.s.o.Log.Warn("refit: "+err.Error(), "models", len(keys))
	}
	if err == nil {
		keys = nil
	}
	err = f.stale(slices.Collect(maps.Keys(keys)))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fitting = nil
	if err = errors.Join(err, f.save()); err != nil {
		f.s.o.Log.Error("refit: "+err.Error(), "file", unfittedFile)
	}
}

// refit fits keys, each with Options.FitFamily and the families it was fitted with
// before.
func (f *refitter) refit(ctx context.Context, keys map[spec.Key]bool) error {
	var failed []error
	byFamily := map[string]map[spec.Key]bool{f.s.o.FitFamily: maps.Clone(keys)} // save reads keys meanwhile
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
	start, last := time.Now(), f.lastMark()
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
	f.s.models.Fitted(fitted) // where it failed some may have been renewed
	f.s.announceFitted()
	if err != nil {
		return FitResponse{}, err
	}
	if f.s.o.Refit <= 0 && keys == nil && len(filter.Sources) == 0 && fam.Name == f.s.o.FitFamily && len(skipped) == 0 { // else the background fits all families
		if err := f.unmark(fitted, last); err != nil {
			return FitResponse{}, err
		}
	}
	f.s.metrics.fits.WithLabelValues("fitted").Add(float64(len(cards)))
	f.s.metrics.fits.WithLabelValues("skipped").Add(float64(len(skipped)))
	f.s.metrics.fitting.Observe(time.Since(start).Seconds())
	f.s.o.Log.Info("fitted", "family", fam.Name, "models", len(cards), "skipped", len(skipped), "seconds", time.Since(start).Seconds())
	return FitResponse{query.Fits{Cards: append([]perfmodel.Card{}, cards...), Pooled: query.Pool(cards)}, append([]string{}, skipped...)}, nil
}
