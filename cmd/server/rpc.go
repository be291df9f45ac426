package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/pacerpb"
	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// rpcScopes are the scopes of the operations of gRPC; read where absent.
var rpcScopes = map[string]string{"/arrow.flight.protocol.FlightService/DoPut": access.ScopeIngest}

// healthService has the requests that need no token, as /healthz.
const healthService = "/grpc.health.v1.Health/"

// Limits of one connection of gRPC.
const (
	maxRPCStreams = 128       // requests at a time
	maxRPCWindow  = 256 << 10 // bytes that no handler has read
)

// streamIdle bounds the wait for the next message of a client.
const streamIdle = 5 * time.Minute

// overHTTP2 makes srv answer HTTP/2 alone, also without TLS.
func overHTTP2(srv *http.Server) {
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxRPCStreams, MaxReceiveBufferPerStream: maxRPCWindow,
		MaxReceiveBufferPerConnection: 4 * maxRPCWindow, SendPingTimeout: time.Minute}
}

// rpcRoutes returns the handler of gRPC and Arrow Flight. Its requests are those of HTTP/2, so they pass the same
// checks, limits, metrics and logs.
func (s *Server) rpcRoutes() http.Handler {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(int(s.o.MaxBody)), grpc.MaxSendMsgSize(int(s.o.MaxAnswer)), grpc.StatsHandler(consumption{}),
		grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.streaming))
	s.health = health.NewServer()
	healthpb.RegisterHealthServer(g, s.health)
	flight.RegisterFlightServiceServer(g, &flightService{s: s})
	pacerpb.RegisterPacerServer(g, &pacerService{s: s})
	reflection.Register(g)
	m := &router{ServeMux: http.NewServeMux(), s: s, routes: map[string]*route{}, other: s.metrics.route("other rpc"), scopes: map[string]string{}, streams: s.router.streams}
	for service, info := range g.GetServiceInfo() {
		for _, method := range info.Methods {
			path := "/" + service + "/" + method.Name
			m.routes["POST "+path], m.scopes["POST "+path] = s.metrics.route(path), rpcScopes[path]
			m.Handle("POST "+path, s.rpcHandler(g))
		}
	}
	m.Handle("/", s.rpcHandler(g)) // which answers that there is no such method
	s.rpcs = m
	return s.watched(m, rpcOnly(s.auth(m)))
}

// rpcOnly refuses other requests than those of gRPC, and marks answers to these for writeProblem.
func rpcOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || !strings.HasPrefix(r.Header.Get("Content-Type"), problem.GRPCType) {
			problem.Write(w, problem.New(http.StatusUnsupportedMediaType, "", "this address answers gRPC and Arrow Flight alone: content type application/grpc over HTTP/2"))
			return
		}
		w.Header().Set("Content-Type", problem.GRPCType)
		next.ServeHTTP(w, r)
		if response, ok := w.(*responseWriter); ok {
			response.send()
			if code := w.Header().Get("Grpc-Status"); code != "" {
				response.status = problem.StatusOf(code) // that it counts as; that of HTTP is sent
			}
		}
	})
}

// rpcHandler answers a request with g.
func (s *Server) rpcHandler(g *grpc.Server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.limit.under.Add(1)
		defer s.limit.under.Done()
		f := newInflow(s, w, r)
		defer f.end()
		r.Body = f
		g.ServeHTTP(flushing{w}, r.WithContext(context.WithValue(contextOf(w), inflowKey{}, f)))
	}
}

// flushing sends what is written.
type flushing struct{ http.ResponseWriter }

// Flush implements http.Flusher.
func (w flushing) Flush() {
	if response, ok := w.ResponseWriter.(*responseWriter); ok {
		response.send()
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // the client may have disconnected
}
