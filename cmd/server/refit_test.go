package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
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
			if err := f.Mark([]spec.Key{{Model: "m", Accelerator: "a"}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			age := time.Since(*fitted.Load())
			if _, unfitted := f.Waiting(); max(age, unfitted) > 2*refit {
				t.Fatalf("after %v: the model is %v old, and the oldest measurement without a fit %v, want at most %v", time.Since(start), age, unfitted, 2*refit)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(2 * refit)
		if n, age := f.Waiting(); n != 0 || age != 0 {
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
			if err := f.Mark([]spec.Key{{Model: "m", Accelerator: "a"}}); err != nil {
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
		if err := next.Load(); err != nil {
			t.Fatal(err)
		}
		n, _ := next.Waiting()
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
}

// unfittedOf returns the file of the models that are behind the measurements.
func unfittedOf(s *Server) string { return filepath.Join(filepath.Dir(s.db.Dir()), unfittedFile) }

// Without fits in the background a requested one removes the marks of what it fits, but not those made meanwhile.
func TestRequestedFitUnmarks(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1.5)
	waiting := func() int {
		n, _ := s.fits.Waiting()
		return n
	}
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{rows}))
	post[FitResponse](t, s, "/v1/fit", `{"sources":["`+rows[0].Source+`"]}`)
	if waiting() != 1 {
		t.Errorf("%d models are marked after a fit of some measurements", waiting())
	}
	post[FitResponse](t, s, "/v1/fit", `{}`)
	if _, err := os.Stat(unfittedOf(s)); waiting() != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%d models are marked after a fit; file: %v", waiting(), err)
	}
	last := s.fits.LastMark()
	if err := errors.Join(s.fits.Mark(keysOf(rows)), s.fits.Unmark(keysOf(rows), last)); err != nil || waiting() != 1 {
		t.Errorf("%d models are marked after measurements that came during a fit, %v", waiting(), err)
	}
}

// Keys that a fit fails for, or that a killed server left, are fitted later.
func TestUnfittedKeysSurvive(t *testing.T) {
	s := newServer(t, Options{Refit: time.Second})
	key := spec.Key{Model: "m", Accelerator: "a"}
	if err := s.fits.Mark([]spec.Key{key}); err != nil {
		t.Fatal(err)
	}
	after := newRefitter(s) // of the next process
	if err := after.Load(); err != nil {
		t.Fatal(err)
	}
	after.fits = func(context.Context, map[spec.Key]bool) error { return errors.New("no") }
	after.fitTaken(t.Context())
	if n, _ := after.Waiting(); n != 1 {
		t.Errorf("%d models wait after a fit that failed", n)
	}
	var fitted map[spec.Key]bool
	after.fits = func(_ context.Context, keys map[spec.Key]bool) error { fitted = keys; return nil }
	after.fitTaken(t.Context())
	if len(fitted) != 1 {
		t.Errorf("fitted %v", slices.Collect(maps.Keys(fitted)))
	}
	last := newRefitter(s)
	if err := last.Load(); err != nil {
		t.Fatal(err)
	}
	if n, _ := last.Waiting(); n != 0 {
		t.Errorf("%d models wait after they were fitted", n)
	}
}

// The age of the oldest measurement without a fit counts through fits that fail, a fit that runs and a new process.
func TestUnfittedAge(t *testing.T) {
	const refit = 30 * time.Second
	s := newServer(t, Options{})
	s.o.Refit = refit
	synctest.Test(t, func(t *testing.T) {
		f := newRefitter(s)
		failed := errors.New("no space left on device")
		f.fits = func(context.Context, map[spec.Key]bool) error { time.Sleep(time.Second); return failed }
		start := time.Now()
		hasAge := func(when string, want time.Duration) {
			t.Helper()
			if n, age := f.Waiting(); (n == 1) != (want > 0) || age != want {
				t.Errorf("%s: %d models wait for %v, want %v", when, n, age, want)
			}
		}
		if err := f.Mark([]spec.Key{{Model: "m", Accelerator: "a"}}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go f.run(ctx)
		time.Sleep(20*time.Minute + refit/2)
		hasAge("after fits that failed", time.Since(start))
		stop()
		synctest.Wait()

		f = newRefitter(s)
		f.fits = func(context.Context, map[spec.Key]bool) error { time.Sleep(time.Minute); return nil }
		if err := f.Load(); err != nil {
			t.Fatal(err)
		}
		hasAge("in a new process", time.Since(start))
		go f.fitTaken(t.Context())
		time.Sleep(10 * time.Second)
		hasAge("while a fit runs", time.Since(start))
		if err := f.Mark([]spec.Key{{Model: "m", Accelerator: "a"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		hasAge("of a measurement that came during a fit", time.Minute)
		f.fitTaken(t.Context())
		hasAge("at the end", 0)
	})
}

// A file of keys of an earlier release, without times, is read.
func TestUnfittedWithoutTimes(t *testing.T) {
	s := newServer(t, Options{})
	spectest.WriteFile(t, unfittedOf(s), []byte(`[{"model":"m","accelerator":"a"}]`), 0o600)
	if err := s.fits.Load(); err != nil {
		t.Fatal(err)
	}
	if n, age := s.fits.Waiting(); n != 1 || age > time.Minute {
		t.Errorf("%d models wait for %v", n, age)
	}
}

// A change of the step times that a fit finds is counted, once for all models, and no longer once its rows are deleted.
func TestDriftsAreCounted(t *testing.T) {
	s := newServer(t, Options{})
	counted := func() bool {
		t.Helper()
		return strings.Contains(do(s, http.MethodGet, "/metrics", "").Body.String(), "\npacer_drifts 1\n")
	}
	if counted() {
		t.Error("a change without measurements")
	}
	plans, rows := measured(t, s, 1), []spec.Measurement(nil)
	for day := range 40 {
		m := plans[day%len(plans)]
		m.At, m.Origin = time.Date(2026, 4, 1+day, 9, 0, 0, 0, time.UTC), fmt.Sprint(day)
		if day >= 20 {
			m.StepSec = []float64{2 * m.StepSec[0]}
		}
		rows = append(rows, m)
	}
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{rows}))
	if cards := post[FitResponse](t, s, "/v1/fit", `{}`).Cards; len(cards[0].Drifts) != 1 || !counted() {
		t.Errorf("%v found, counted: %v", cards[0].Drifts, counted())
	}
	if w := do(s, http.MethodDelete, "/v1/measurements?source="+rows[0].Source, ""); w.Code != http.StatusOK || counted() {
		t.Errorf("after a deletion: %d, counted: %v", w.Code, counted())
	}
}
