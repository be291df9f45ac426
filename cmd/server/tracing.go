package server

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/apache/arrow/go/v17/arrow"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// tracing starts spans. Without a Tracer it costs nothing.
type tracing struct{ trace.Tracer }

// noSpan is the span of what is not traced.
var noSpan = trace.SpanFromContext(context.Background())

// span starts a span below that of ctx, if there is one. The caller ends it with
// endSpan.
func (t tracing) span(ctx context.Context, name string) (context.Context, trace.Span) {
	if t.Tracer == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, noSpan
	}
	return t.Start(ctx, name)
}

// root starts a span, below that of ctx if there is one.
func (t tracing) root(ctx context.Context, name string) (context.Context, trace.Span) {
	if t.Tracer == nil {
		return ctx, noSpan
	}
	return t.Start(ctx, name)
}

// endSpan ends a span, as failed where err is not nil.
func endSpan(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// countRows says how many rows a span is about.
func countRows(span trace.Span, rows int) {
	if span.IsRecording() {
		span.SetAttributes(attribute.Int("pacer.rows", rows))
	}
}

// observed reports whether requests are traced or measured by OpenTelemetry.
func (s *Server) observed() bool { return s.o.Tracing != nil || s.o.Meters != nil }

// traced gives each request a span, below that of its traceparent, and the metrics
// http.server.* of OpenTelemetry. Health checks and scrapes have neither.
//
// Source: OpenTelemetry semantic conventions for HTTP.
func (s *Server) traced(next http.Handler) http.Handler {
	if !s.observed() {
		return next
	}
	options := []otelhttp.Option{
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(r *http.Request) bool {
			return r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && r.URL.Path != "/metrics"
		}),
	}
	if s.o.Tracing != nil {
		options = append(options, otelhttp.WithTracerProvider(s.o.Tracing))
	}
	if s.o.Meters != nil {
		options = append(options, otelhttp.WithMeterProvider(s.o.Meters))
	}
	return otelhttp.NewHandler(next, "request", options...)
}

// nameSpan gives the span of r its route and client. otelhttp takes the name from
// r.Pattern.
func nameSpan(r *http.Request, info *requestInfo, route string) {
	span := trace.SpanFromContext(r.Context())
	if !span.IsRecording() {
		return
	}
	if route == "other" {
		r.Pattern = "" // it is that of all other requests
	} else {
		span.SetAttributes(semconv.HTTPRoute(route))
	}
	if info.token != "" {
		span.SetAttributes(attribute.String("pacer.token", info.token))
	}
	if info.err != nil {
		span.RecordError(info.err)
	}
}

// database is a store with spans for its reads and writes.
type database struct {
	*store.DB
	trace tracing
}

// Query calls DB.Query. Its span is as long as the reading.
func (d database) Query(ctx context.Context, f store.Filter) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		ctx, span := d.trace.span(ctx, "store.query")
		rows := 0
		var failed error
		defer func() {
			countRows(span, rows)
			endSpan(span, failed)
		}()
		for m, err := range d.DB.Query(ctx, f) {
			if failed = err; err == nil {
				rows++
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// Batches calls DB.Batches. Its span is as long as the reading and writing.
func (d database) Batches(ctx context.Context, write func(arrow.Record) error, most int, f store.Filter) (n int, err error) {
	ctx, span := d.trace.span(ctx, "store.query")
	defer func() {
		countRows(span, n)
		endSpan(span, err)
	}()
	return d.DB.Batches(ctx, write, most, f)
}

// Summary calls DB.Summary.
func (d database) Summary(ctx context.Context) (out []store.Tally, err error) {
	ctx, span := d.trace.span(ctx, "store.summary")
	defer func() { endSpan(span, err) }()
	return d.DB.Summary(ctx)
}

// Page calls DB.Page.
func (d database) Page(ctx context.Context, f store.Filter, after []byte, most, size int) (out []store.Record, next []byte, err error) {
	ctx, span := d.trace.span(ctx, "store.page")
	defer func() {
		countRows(span, len(out))
		endSpan(span, err)
	}()
	return d.DB.Page(ctx, f, after, most, size)
}

// Records calls DB.Records.
func (d database) Records(ctx context.Context, f store.Filter) (out []store.Record, err error) {
	ctx, span := d.trace.span(ctx, "store.records")
	defer func() {
		countRows(span, len(out))
		endSpan(span, err)
	}()
	return d.DB.Records(ctx, f)
}

// MeasuredText calls DB.MeasuredText.
func (d database) MeasuredText(ctx context.Context, accelerator string) (text string, err error) {
	ctx, span := d.trace.span(ctx, "store.microbenchmarks")
	defer func() { endSpan(span, err) }()
	return d.DB.MeasuredText(ctx, accelerator)
}

// Backup calls DB.Backup.
func (d database) Backup(ctx context.Context, w io.Writer) (err error) {
	_, span := d.trace.span(ctx, "store.backup")
	defer func() { endSpan(span, err) }()
	return d.DB.Backup(w)
}

// PutAll calls DB.PutAll.
func (d database) PutAll(ctx context.Context, ms ...spec.Measurement) (n store.Counts, err error) {
	ctx, span := d.trace.span(ctx, "store.put")
	countRows(span, len(ms))
	defer func() { endSpan(span, err) }()
	return d.DB.PutAll(ctx, ms...)
}

// PutOnce calls DB.PutOnce.
func (d database) PutOnce(ctx context.Context, client, key string, body [32]byte, ms ...spec.Measurement) (n store.Counts, err error) {
	ctx, span := d.trace.span(ctx, "store.put")
	countRows(span, len(ms))
	defer func() { endSpan(span, err) }()
	return d.DB.PutOnce(ctx, client, key, body, ms...)
}

// Forget calls DB.Forget.
func (d database) Forget(ctx context.Context, rows []store.Record, reason string) (n int, err error) {
	ctx, span := d.trace.span(ctx, "store.forget")
	countRows(span, len(rows))
	defer func() { endSpan(span, err) }()
	return d.DB.Forget(ctx, rows, reason)
}
