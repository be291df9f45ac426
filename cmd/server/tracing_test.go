package server

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pacer-ml/pacer/profiler/store"
)

// Without tracing a span costs no memory.
func TestTracingOff(t *testing.T) {
	var off tracing
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		_, span := off.span(ctx, "queue")
		countRows(span, 3)
		endSpan(span, context.Canceled)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// A refit in the background is a trace of its own, with what it reads, and a failed read says why.
func TestTracingRefit(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	s := newServer(t, Options{Tracing: trace.NewTracerProvider(trace.WithSpanProcessor(recorder))})
	stored := measured(t, s, 1.5)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{stored}))
	before := len(recorder.Ended())
	if err := s.fits.refit(context.Background(), s.fits.Take()); err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, span := range recorder.Ended()[before:] {
		for _, a := range span.Attributes() {
			if a.Key == attribute.Key("pacer.rows") {
				rows[span.Name()] = a.Value.AsInt64()
			}
		}
	}
	if rows["models.fit"] != int64(len(stored)) || rows["store.query"] == 0 {
		t.Errorf("rows of spans: %v", rows)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	ctx, root := s.trace.root(ended, "test")
	for _, err := range s.db.Query(ctx, store.Filter{}) {
		if err == nil {
			t.Error("a row of an ended context")
		}
	}
	root.End()
	all := recorder.Ended()
	if failed := all[len(all)-2]; failed.Name() != "store.query" || !strings.Contains(failed.Status().Description, context.Canceled.Error()) {
		t.Errorf("%s: %+v", failed.Name(), failed.Status())
	}
}

// Every prediction has one span, also where its plan cannot be kept or needs a search.
func TestTracingPredictions(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	s := newServer(t, Options{Tracing: trace.NewTracerProvider(trace.WithSpanProcessor(recorder))})
	for _, c := range []struct {
		status            int
		model, plan, more string
	}{
		{200, "llama3-8b", "dp=8,zero=3", ""}, {200, "llama3-8b", "dp=8,zero=3", ""}, {200, "llama3-8b", "dp=8", ""},
		{200, "llama3-8b", "dp=16,zero=3,offload=params,recompute=full", ""},
		{404, "turnip", "dp=8", ""}, {422, "llama3-8b", "tp=7", ""}, {422, "llama3-8b", "dp=x", ""},
		{422, "llama3-8b", "dp=8,zero=3", `,"global_batch":9`}, {200, "llama3-8b", "dp=8,zero=3", `,"explain":true`},
	} {
		before := len(recorder.Ended())
		w := do(s, http.MethodPost, "/v1/predict", `{"model":"`+c.model+`","accelerator":"h100","plan":"`+c.plan+`"`+c.more+`}`)
		if w.Code != c.status {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
		spans, failed := 0, false
		for _, span := range recorder.Ended()[before:] {
			if span.Name() == "predict" {
				spans++
				failed = span.Status().Code == codes.Error
			}
		}
		if spans != 1 || failed != (c.status != http.StatusOK) {
			t.Errorf("%+v: %d spans, failed: %v", c, spans, failed)
		}
	}
}
