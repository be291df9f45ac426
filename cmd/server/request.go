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
	id      string // trace id of W3C Trace Context: the client's, or a new one
	address string // of the client, with its port
	token   string // name of its token, "" without one
	allowed bool   // by its token
	err     error  // why the status is 5xx
}

type requestKey struct{}

// requestContext is the context of a request, with its info.
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

// requestOf returns the info of the request of a handler's context.
func requestOf(ctx context.Context) *requestInfo {
	if i, ok := ctx.Value(requestKey{}).(*requestInfo); ok {
		return i
	}
	return &requestInfo{} // a call that is no request, in tests
}

var flowSeed = maphash.MakeSeed()

// flow identifies the client among those that wait for searches.
func (i *requestInfo) flow() uint64 { return maphash.String(flowSeed, i.client()) }

// client returns the name of the token that allows the request, else the address of the client. Programs of this machine
// share an address, so each of their connections is a client.
func (i *requestInfo) client() string {
	if i.allowed {
		return i.token
	}
	if host := access.Host(i.address); !access.Loopback(host) && host != "" {
		return host
	}
	return i.address
}

// newRequest returns the context of r with its info. Handlers get it by withContext, since most questions are answered
// without one.
func (s *Server) newRequest(r *http.Request) *requestContext {
	return &requestContext{r.Context(), requestInfo{id: traceID(r, s.observed()), address: r.RemoteAddr}}
}

// contextOf returns the context of the request that w answers. w is that of watched.
func contextOf(w http.ResponseWriter) context.Context { return w.(*responseWriter).request }

// withContext gives the requests of next the context with their info.
func withContext(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { next(w, r.WithContext(contextOf(w))) }
}

// traceID returns the trace id of the span of r, which requests have if they are observed, else that of its traceparent, such as
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, or a new one.
//
// Source: W3C Trace Context, section 3.2.
func traceID(r *http.Request, observed bool) string {
	var span trace.SpanContext
	if observed {
		span = trace.SpanContextFromContext(r.Context())
	}
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
