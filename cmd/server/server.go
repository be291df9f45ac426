package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"google.golang.org/grpc/health"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/answercache"
	"github.com/pacer-ml/pacer/cmd/server/limits"
	"github.com/pacer-ml/pacer/cmd/server/simqueue"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// Server answers queries over HTTP from a store and a registry of fitted models. No
// other process may write to these while the server runs.
type Server struct {
	o        Options
	db       database
	trace    tracing
	resolver *query.Resolver
	models   *answer.Answerer
	fits     *refitter
	metrics  *metrics
	drifts   drifts
	api      huma.API
	handler  http.Handler
	router   *router
	rpcs     *router // of gRPC
	rpc      http.Handler
	limit    limiter
	memory   memoryBudget
	answers  answercache.Cache
	tokens   *access.Tokens
	ending   atomic.Bool // shutting down
	health   *health.Server
	draining context.Context // ends when no new requests are answered
	drain    context.CancelFunc

	simulations *simqueue.Queue
	campaigns   campaigns
	underWay    underWay
}

// New returns a server over db and reg. The caller owns both and closes db after
// Serve has returned.
func New(db *store.DB, reg *registry.Registry, o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Server{o: o.withDefaults()}
	s.draining, s.drain = context.WithCancel(context.Background())
	if s.o.Tracing != nil {
		s.trace.Tracer = s.o.Tracing.Tracer("github.com/pacer-ml/pacer/cmd/server")
	}
	s.db = database{db, s.trace}
	s.resolver = &query.Resolver{
		Read:   func(use func(reader.Store) error) error { return use(s.db) },
		Fitted: reg,
		Warn:   func(err error) { s.o.Log.Warn(err.Error()) },
	}
	s.models = answer.New(s.resolver)
	s.limit = newLimiter(&s.o)
	s.memory = newMemoryBudget(s.o.MaxBuffered)
	s.metrics = newMetrics(s.o.Registry, s.o.Version)
	s.fits = newRefitter(s)
	s.simulations = simqueue.New(&simqueue.Options{Resolver: s.resolver, Timeout: s.o.FitTimeout, Version: s.o.Version, Panicked: s.simulationPanicked, After: s.o.SimulationsAfter})
	s.metrics.watchRefit(s.fits)
	s.metrics.watchDrifts(s)
	s.metrics.watchStore(s)
	s.metrics.watchSnapshots(&s.o)
	if s.o.Replica == nil {
		if err := s.fits.Load(); err != nil {
			return nil, err
		}
	}
	if s.o.Writer != nil && s.o.Writer.TookOver() {
		if err := s.refitAll(); err != nil {
			return nil, err
		}
	}
	var err error
	if s.tokens, err = access.Load(s.o.Token, s.o.TokensFile, func(err error) { s.o.Log.Error(err.Error()) }); err != nil {
		return nil, err
	}
	if s.handler, err = s.routes(); err != nil {
		return nil, err
	}
	s.rpc = s.rpcRoutes()
	return s, nil
}

// Handler returns the HTTP handler, for tests and other servers.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers requests on l until ctx ends, and those of gRPC on rpc unless it is nil. It then refuses new
// connections, waits up to Options.Drain for running requests, stops a background fit, and returns nil
// once the store is no longer in use. Acknowledged measurements are on disk. It ends
// in the same way, with an error that wraps snapshot.ErrLost, where another writer has
// the lease of Options.Writer.
func (s *Server) Serve(ctx context.Context, l, rpc net.Listener) error {
	background, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.fits.run(background) })
	lost := s.runSnapshots(background, &wg)
	defer wg.Wait()
	defer stop()
	defer s.simulations.Close()

	// Handlers are cancelled only after Options.Drain.
	requests, cancel := context.WithCancelCause(context.Background())
	abort := func() { cancel(errShutdown) }
	defer abort()
	failed := make(chan error, 2)
	servers := []*http.Server{s.start(requests, l, s.handler, nil, failed)}
	if rpc != nil {
		servers = append(servers, s.start(requests, rpc, s.rpc, overHTTP2, failed))
	}
	select {
	case err := <-failed:
		return errors.Join(fmt.Errorf("server: %w", err), s.shutdown(servers, abort))
	case err := <-lost:
		s.unready()
		return errors.Join(fmt.Errorf("server: %w", err), s.shutdown(servers, abort))
	case <-ctx.Done():
	}
	s.unready()
	select {
	case err := <-failed:
		return errors.Join(fmt.Errorf("server: %w", err), s.shutdown(servers, abort))
	case <-time.After(s.o.ShutdownDelay):
	}
	return s.shutdown(servers, abort)
}

// unready makes the checks of health say that the server ends.
func (s *Server) unready() {
	s.ending.Store(true)
	s.health.Shutdown()
}

// start answers the requests on l with h, which have the context requests, until the server is shut down. It sends the
// error that ends it before.
func (s *Server) start(requests context.Context, l net.Listener, h http.Handler, change func(*http.Server), failed chan<- error) *http.Server {
	bounded := limits.NewConnections(l, limits.MaxConnections())
	srv := &http.Server{
		ConnState:         bounded.Changed,
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       max(s.o.Timeout, 10*time.Second),
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		TLSConfig:         s.o.TLS.Clone(), // net/http changes it
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelWarn),
	}
	if change != nil {
		change(srv)
	}
	serve := srv.Serve
	if s.o.TLS != nil {
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	go func() {
		if err := serve(bounded); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return srv
}

// shutdown ends servers: it drains requests, then cancels their handlers, then closes
// the remaining connections.
func (s *Server) shutdown(servers []*http.Server, abort func()) error {
	s.drain()
	err := each(servers, s.o.Drain, (*http.Server).Shutdown)
	if errors.Is(err, context.DeadlineExceeded) {
		s.o.Log.Warn("running requests were cut off", "after", s.o.Drain)
		abort()
		err = each(servers, time.Second, (*http.Server).Shutdown)
	}
	if err != nil {
		err = each(servers, 0, func(srv *http.Server, _ context.Context) error { return srv.Close() })
	}
	s.limit.wait() // a handler may outlive its connection and use the store
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

// each calls do with all servers at the same time, and a context that ends after a time.
func each(servers []*http.Server, after time.Duration, do func(*http.Server, context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, srv := range servers {
		wg.Go(func() { errs[i] = do(srv, ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
