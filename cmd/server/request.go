package server

import (
	"context"
	"encoding/hex"
	"hash/maphash"
	"math/rand/v2"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/pacer-ml/pacer/cmd/server/access"
)

// requestInfo is what is known of one request besides its body.
type requestInfo struct {
	id     string // trace id of W3C Trace Context: the client's, or a new one
	client string // name of its token, or its address
	token  string // name of its token, "" without one
	err    error  // why the status is 5xx
}

type requestKey struct{}

// requestOf returns the request of a handler's context.
func requestOf(ctx context.Context) *requestInfo {
	if i, ok := ctx.Value(requestKey{}).(*requestInfo); ok {
		return i
	}
	return &requestInfo{} // a call that is no request, in tests
}

var flowSeed = maphash.MakeSeed()

// flow identifies the client among those that wait for searches.
func (i *requestInfo) flow() uint64 { return maphash.String(flowSeed, i.client) }

// newRequest returns r with its info in the context.
func newRequest(r *http.Request) (*http.Request, *requestInfo) {
	i := &requestInfo{id: traceID(r), client: r.RemoteAddr}
	// Programs of this machine share an address, so each connection is a client.
	if host := access.Host(r.RemoteAddr); !access.Loopback(host) && host != "" {
		i.client = host
	}
	return r.WithContext(context.WithValue(r.Context(), requestKey{}, i)), i
}

// traceID returns the trace id of the span of r, else that of its traceparent, such as
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, or a new one.
//
// Source: W3C Trace Context, section 3.2.
func traceID(r *http.Request) string {
	span := trace.SpanContextFromContext(r.Context())
	if !span.IsValid() && r.Header.Get("Traceparent") != "" {
		span = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
	}
	if span.IsValid() {
		return span.TraceID().String()
	}
	var id [16]byte
	for i := range id {
		id[i] = byte(rand.Uint32()) //nolint:gosec // an id, no secret
	}
	return hex.EncodeToString(id[:])
}
