package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/hybrid"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// waitRefitted waits until e reports new fits.
func waitRefitted(t *testing.T, e *estimates) {
	t.Helper()
	for range 2000 {
		if e.refitted() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("new fits are not seen")
}

// looking watches e in the background, after its first look.
func looking(t *testing.T, e *estimates) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.watch(ctx, time.Millisecond)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// TestNewFit: once a model is fitted, it answers, and it is reported once.
func TestNewFit(t *testing.T) {
	e, _ := testEstimates(t, nil)
	r := testRequest(t, 8)
	before, err := e.Best(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	looking(t, e)
	time.Sleep(20 * time.Millisecond)
	if e.refitted() {
		t.Error("refitted before a fit")
	}
	sec, _, _ := before.Prediction.StepSec(r.GlobalBatch)
	row := spec.Measurement{Config: before.Config, Outcome: spec.OK, StepSec: []float64{3 * sec}}
	fitted, err := hybrid.Shipped().Condition(t.Context(), []spec.Measurement{row})
	if err != nil {
		t.Fatal(err)
	}
	card := perfmodel.Card{Key: keyOf(r), Family: "hybrid", NFit: 1, NHeldOut: 1, DataHash: "1"}
	if err := e.resolver.Fitted.Put(card, fitted); err != nil {
		t.Fatal(err)
	}
	if now, err := e.Best(t.Context(), r); err != nil || now.Prediction.Throughput != before.Prediction.Throughput {
		t.Errorf("%v, %v: the answer changed in the middle of a decision", now.Prediction, err)
	}
	waitRefitted(t, e)
	now, err := e.Predict(t.Context(), before.Config)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := now.StepSec(r.GlobalBatch); math.Abs(math.Log(got/(3*sec))) > 0.2 {
		t.Errorf("a step takes %.3g s, measured %.3g s", got, 3*sec)
	}
	time.Sleep(20 * time.Millisecond)
	if e.refitted() {
		t.Error("one fit is reported twice")
	}
}

// TestNewFitOfServer: fits of the server count. That it does not answer for a while changes nothing.
func TestNewFitOfServer(t *testing.T) {
	var hash, down, looks atomic.Int32
	e, _ := testEstimates(t, func(w http.ResponseWriter, r *http.Request) {
		if looks.Add(1); r.URL.Path != "/v1/cards" || down.Load() > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		card := perfmodel.Card{Key: spec.Key{Model: "m", Accelerator: "a"}, Family: "hybrid", DataHash: string(rune('a' + hash.Load()))}
		if err := json.NewEncoder(w).Encode(map[string]any{"cards": []perfmodel.Card{card}}); err != nil {
			t.Error(err)
		}
	})
	e.limit = time.Minute
	more := func() { // at least one look that began after now
		for n := looks.Load() + 2; looks.Load() < n; {
			time.Sleep(time.Millisecond)
		}
	}
	looking(t, e)
	more()
	down.Store(1)
	more()
	down.Store(0)
	more()
	if e.refitted() {
		t.Error("refitted without a fit")
	}
	hash.Add(1)
	waitRefitted(t, e)
	more()
	if e.refitted() {
		t.Error("one fit is reported twice")
	}
}

// TestServerIsBack: a server that failed counts as back once it shows its models, after the pause in which it is not asked.
func TestServerIsBack(t *testing.T) {
	e, _ := testEstimates(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/cards" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, `{"cards": []}`)
	})
	if _, err := e.Best(t.Context(), testRequest(t, 8)); err != nil {
		t.Fatal(err)
	}
	looking(t, e)
	time.Sleep(20 * time.Millisecond)
	if e.planner() == nil {
		t.Error("back during the pause")
	}
	e.mu.Lock()
	e.silent = time.Now()
	e.mu.Unlock()
	for range 2000 {
		if e.planner() == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("not back after the pause")
}
