package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/flight"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pacer-ml/pacer/cmd/server/access"
)

// serveRPC serves s over HTTP and gRPC, and returns a connection to the latter.
func serveRPC(t testing.TB, s *Server, with ...grpc.DialOption) (conn *grpc.ClientConn, end func()) {
	t.Helper()
	var listeners [2]net.Listener
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listeners[0], listeners[1]) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	if len(with) == 0 {
		with = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	conn, err := grpc.NewClient(listeners[1].Addr().String(), with...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); end() })
	return conn, end
}

// flightOf returns a client of Arrow Flight.
func flightOf(conn *grpc.ClientConn) flight.Client { return flight.NewClientFromConn(conn, nil) }

// rpcOf answers a request of gRPC without a network, and returns its status.
func rpcOf(s *Server, path string, headers ...string) (code, message string, w *httptest.ResponseRecorder) {
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(""))
	r.ProtoMajor, r.ProtoMinor = 2, 0
	r.Header.Set("Content-Type", "application/grpc")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w = httptest.NewRecorder()
	s.rpc.ServeHTTP(w, r)
	return w.Header().Get("Grpc-Status"), w.Header().Get("Grpc-Message"), w
}

// Each operation of gRPC wants its scope, as those of HTTP. The operations are those that are registered.
func TestScopesOfRPC(t *testing.T) {
	s, secrets, _ := newScopedServer(t)
	s.drain() // no stream waits for messages
	for pattern := range s.rpcs.routes {
		_, path, _ := strings.Cut(pattern, " ")
		want := access.ScopeRead
		if path == "/arrow.flight.protocol.FlightService/DoPut" {
			want = access.ScopeIngest
		}
		for scope, secret := range secrets {
			code, message, w := rpcOf(s, path, "Authorization", "Bearer "+secret)
			allowed := scope == want || scope == access.ScopeAdmin || strings.HasPrefix(path, "/grpc.health.v1.Health/")
			if refused := code == "7"; refused == allowed || code == "16" || code == "" || w.Code != http.StatusOK {
				t.Errorf("%s with scope %s: status %d, code %q %q", path, scope, w.Code, code, message)
			}
		}
	}
	if n := len(s.rpcs.routes); n < 14 {
		t.Errorf("%d operations", n)
	}
	if code, message, _ := rpcOf(s, "/arrow.flight.protocol.FlightService/DoGet"); code != "16" || !strings.Contains(message, "bearer token is needed") {
		t.Errorf("without a token: %q %q", code, message)
	}
}

// The address of gRPC answers nothing else, and no page of another site.
func TestRPCOnly(t *testing.T) {
	s := newServer(t, Options{})
	w := httptest.NewRecorder()
	s.rpc.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/v1/models", nil))
	if w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("HTTP: %d %s", w.Code, w.Body)
	}
	if code, _, _ := rpcOf(s, "/arrow.flight.protocol.FlightService/ListFlights", "Origin", "http://evil.example"); code != "7" {
		t.Errorf("a page of another site: %q", code)
	}
	if code, message, _ := rpcOf(s, "/pacer.v1.Nosuch/Method"); code != "12" {
		t.Errorf("no such method: %q %q", code, message)
	}
}

// A request of gRPC is a line of the access log with its status, and counts by method.
func TestAccessLogOfRPC(t *testing.T) {
	var accessLog bytes.Buffer
	s := newServer(t, Options{AccessLog: slog.New(slog.NewJSONHandler(&accessLog, nil))})
	conn, end := serveRPC(t, s)
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	_, err := flightOf(conn).GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"nosuch"}})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), `there is no flight "nosuch"`) {
		t.Errorf("%v", err)
	}
	end()
	var line struct {
		ID, Route, Path string
		Status          int
		Seconds         float64
	}
	const route = "/arrow.flight.protocol.FlightService/GetFlightInfo"
	if err := json.Unmarshal(accessLog.Bytes(), &line); err != nil || line.ID != id || line.Route != route || line.Status != http.StatusNotFound || line.Seconds <= 0 {
		t.Errorf("%v: %s", err, &accessLog)
	}
	if n := valueOf(s.metrics.requests.WithLabelValues(route, "404")); n != 1 {
		t.Errorf("counted %g times", n)
	}
}

// Health needs no token, says that the server serves, and says so no more when it ends. Streams that wait do not delay
// the end.
func TestRPCHealth(t *testing.T) {
	s := newServer(t, Options{Token: "secret-secret-secret-1", Drain: time.Hour})
	conn, end := serveRPC(t, s)
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := watch.Recv(); err != nil || m.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", m, err)
	}
	waiting, err := flightOf(conn).DoExchange(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret-secret-secret-1"))
	if err != nil {
		t.Fatal(err)
	}
	go end()
	if m, err := watch.Recv(); err != nil || m.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("at its end: %v, %v", m, err)
	}
	if _, err := waiting.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a stream that waits: %v", err)
	}
	end()
}

// A message that is too large, and one that the budget has no memory for, are refused.
func TestRPCBounds(t *testing.T) {
	for name, o := range map[string]Options{"larger than max": {MaxBody: 1 << 10}, "running requests take": {MaxBody: 1 << 20, MaxAnswer: 1, MaxBuffered: 1 << 14}} {
		s := newServer(t, o)
		conn, _ := serveRPC(t, s)
		_, err := flightOf(conn).GetFlightInfo(t.Context(), &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: bytes.Repeat([]byte(" "), 1<<18)})
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The errors of a full server have the wait, as Retry-After.
func TestRPCRetry(t *testing.T) {
	s := newServer(t, Options{})
	conn, _ := serveRPC(t, s)
	for range maxStreams {
		s.router.streams <- struct{}{}
	}
	stream, err := flightOf(conn).DoGet(t.Context(), &flight.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	st := status.Convert(err)
	waits := false
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			waits = info.RetryDelay.AsDuration() == 10*time.Second
		}
	}
	if st.Code() != codes.ResourceExhausted || !waits || !strings.Contains(st.Message(), "2 backups and exports are running") {
		t.Errorf("%v, details %v", err, st.Details())
	}
}

// gRPC is over the same TLS, with the certificates of clients.
func TestRPCTLS(t *testing.T) {
	_, config, client := newTLS(t)
	for _, c := range []struct {
		certs []tls.Certificate
		want  codes.Code
	}{{client.Certificates, codes.OK}, {nil, codes.Unavailable}} {
		s := newServer(t, Options{TLS: config})
		client.Certificates = c.certs
		conn, _ := serveRPC(t, s, grpc.WithTransportCredentials(credentials.NewTLS(client.Clone())))
		_, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		if status.Code(err) != c.want {
			t.Errorf("%d certificates: %v", len(c.certs), err)
		}
	}
}

// Serve has no gRPC without an address for it.
func TestNoRPC(t *testing.T) {
	s := newServer(t, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Serve(ctx, l, nil); err != nil {
		t.Errorf("without gRPC: %v", err)
	}
}
