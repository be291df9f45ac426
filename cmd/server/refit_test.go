package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
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
