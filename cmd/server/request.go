package server

import (
	"context"
	"encoding/binary"
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

// requestContext is a context with its request.
type requestContext struct {
	context.Context
	requestInfo
}

// Value implements context.Context.
func (c *requestContext) Value(key any) any {
	if key == (requestKey{}) {
		return &c.requestInfo
	}
	return c.Context.Value(key)
}

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
	c := &requestContext{r.Context(), requestInfo{id: traceID(r), client: r.RemoteAddr}}
	// Programs of this machine share an address, so each connection is a client.
	if host := access.Host(r.RemoteAddr); !access.Loopback(host) && host != "" {
		c.client = host
	}
	return r.WithContext(c), &c.requestInfo
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
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64()) //nolint:gosec // an id, no secret
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64()) //nolint:gosec // likewise
	return hex.EncodeToString(id[:])
}
