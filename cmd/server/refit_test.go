package server

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Under a measurement a second for ten minutes, models are never older than twice
// Options.Refit. The clock is virtual.
func TestRefitUnderSteadyIngest(t *testing.T) {
	const refit, fitTime = 30 * time.Second, 5 * time.Second
	s := newServer(t, Options{Refit: refit})
	synctest.Test(t, func(t *testing.T) {
		f := newRefitter(s)
		var fitted atomic.Pointer[time.Time] // the newest measurement that is fitted
		f.fits = func(context.Context, map[spec.Key]bool) error {
			start := time.Now()
			time.Sleep(fitTime)
			fitted.Store(&start)
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		start := time.Now()
		fitted.Store(&start)
		go f.run(ctx)
		for range 600 {
			if err := f.stale([]spec.Key{{Model: "m", Accelerator: "a"}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if age := time.Since(*fitted.Load()); age > 2*refit {
				t.Fatalf("after %v: the model is %v old, want at most %v", time.Since(start), age, 2*refit)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(2 * refit)
		if n, age := f.waiting(); n != 0 || age != 0 {
			t.Errorf("at the end %d models wait for %v", n, age)
		}
		stop()
		synctest.Wait()
	})
}

// A burst is fitted once, Options.Refit after its last measurement.
func TestRefitWaitsForTheEndOfABurst(t *testing.T) {
	const refit = 30 * time.Second
	s := newServer(t, Options{Refit: refit})
	synctest.Test(t, func(t *testing.T) {
		f := newRefitter(s)
		var at []time.Duration
		start := time.Now()
		f.fits = func(context.Context, map[spec.Key]bool) error { at = append(at, time.Since(start)); return nil }
		ctx, stop := context.WithCancel(t.Context())
		go f.run(ctx)
		for range 10 {
			if err := f.stale([]spec.Key{{Model: "m", Accelerator: "a"}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(10 * refit)
		synctest.Wait()
		if !slices.Equal(at, []time.Duration{9*time.Second + refit}) {
			t.Errorf("fitted at %v", at)
		}
		stop()
		synctest.Wait()
	})
}

// Measurements have their mark for the next fit on the disk before they are stored, and lose it where none has changed.
func TestMarkBeforeMeasurements(t *testing.T) {
	s := newServer(t, Options{Refit: time.Hour})
	rows := measured(t, s, 1.5)
	marked := func() int {
		t.Helper()
		next := newRefitter(s) // of a process after this one
		if err := next.load(); err != nil {
			t.Fatal(err)
		}
		n, _ := next.waiting()
		return n
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = s.store(rows, func(...spec.Measurement) (store.Counts, error) { panic("while they are stored") })
	}()
	if n := marked(); n != 0 {
		t.Errorf("%d models are marked after a panic", n)
	}
	for _, changed := range []bool{false, true} {
		_, err := s.store(rows, func(ms ...spec.Measurement) (n store.Counts, err error) {
			if marked() != 1 {
				t.Error("no mark while measurements are stored")
			}
			if changed {
				return s.db.PutAll(t.Context(), ms...)
			}
			return store.Counts{Unchanged: len(ms)}, nil
		})
		if n := marked(); err != nil || (n == 1) != changed {
			t.Errorf("changed: %v: %d models are marked, %v", changed, n, err)
		}
	}
	if len(s.fits.storing) != 0 {
		t.Errorf("%v", s.fits.storing)
	}
}

// Without fits in the background a requested one removes the marks of what it fits, but not those made meanwhile.
func TestRequestedFitUnmarks(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1.5)
	waiting := func() int {
		n, _ := s.fits.waiting()
		return n
	}
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{rows}))
	post[FitResponse](t, s, "/v1/fit", `{"sources":["`+rows[0].Source+`"]}`)
	if waiting() != 1 {
		t.Errorf("%d models are marked after a fit of some measurements", waiting())
	}
	post[FitResponse](t, s, "/v1/fit", `{}`)
	if _, err := os.Stat(s.fits.file); waiting() != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%d models are marked after a fit; file: %v", waiting(), err)
	}
	last := s.fits.lastMark()
	if err := errors.Join(s.fits.stale(keysOf(rows)), s.fits.unmark(keysOf(rows), last)); err != nil || waiting() != 1 {
		t.Errorf("%d models are marked after measurements that came during a fit, %v", waiting(), err)
	}
}

// Keys that a fit fails for, or that a killed server left, are fitted later.
func TestUnfittedKeysSurvive(t *testing.T) {
	s := newServer(t, Options{Refit: time.Second})
	key := spec.Key{Model: "m", Accelerator: "a"}
	if err := s.fits.stale([]spec.Key{key}); err != nil {
		t.Fatal(err)
	}
	after := newRefitter(s) // of the next process
	if err := after.load(); err != nil {
		t.Fatal(err)
	}
	after.fits = func(context.Context, map[spec.Key]bool) error { return errors.New("no") }
	after.fitTaken(t.Context())
	if n, _ := after.waiting(); n != 1 {
		t.Errorf("%d models wait after a fit that failed", n)
	}
	var fitted map[spec.Key]bool
	after.fits = func(_ context.Context, keys map[spec.Key]bool) error { fitted = keys; return nil }
	after.fitTaken(t.Context())
	if len(fitted) != 1 {
		t.Errorf("fitted %v", slices.Collect(maps.Keys(fitted)))
	}
	last := newRefitter(s)
	if err := last.load(); err != nil {
		t.Fatal(err)
	}
	if n, _ := last.waiting(); n != 0 {
		t.Errorf("%d models wait after they were fitted", n)
	}
}
