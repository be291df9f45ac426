package standby

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// Listener is a listener with a deadline, such as those of TCP and of socket files.
type Listener interface {
	net.Listener
	SetDeadline(time.Time) error
}

// Options are those of the server that will answer.
type Options struct {
	Why     string         // it cannot answer yet
	TLS     *tls.Config    // nil = none
	Tokens  *access.Tokens // of /metrics
	Version string
	Log     *slog.Logger
}

// retryAfter is when a client should ask again, in seconds.
const retryAfter = "5"

// stopTime bounds the requests that are being answered at the end.
const stopTime = time.Second

// Serve answers the requests at l until stop is called: /healthz with 200, /metrics, and all others, /readyz among them,
// with 503 and why. stop leaves l open, for another server.
func Serve(l Listener, o *Options) (stop func() error) {
	srv := &http.Server{
		Handler:           handler(o),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		TLSConfig:         o.TLS.Clone(), // net/http changes it
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	kept, ended := &kept{Listener: l}, make(chan error, 1)
	go func() {
		if o.TLS != nil {
			ended <- srv.ServeTLS(kept, "", "")
		} else {
			ended <- srv.Serve(kept)
		}
	}()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			_ = srv.Close() // of connections that are still answered
		}
		err := <-ended
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		return errors.Join(err, l.SetDeadline(time.Time{}))
	}
}

// kept is a listener that stays open when a server closes it.
type kept struct {
	Listener
	closed atomic.Bool
}

// Accept implements net.Listener.
func (k *kept) Accept() (net.Conn, error) {
	if k.closed.Load() {
		return nil, net.ErrClosed
	}
	c, err := k.Listener.Accept()
	if err != nil && k.closed.Load() {
		err = net.ErrClosed
	}
	return c, err
}

// Close implements net.Listener: it ends Accept alone.
func (k *kept) Close() error {
	k.closed.Store(true)
	return k.SetDeadline(time.Unix(1, 0))
}

func handler(o *Options) http.Handler {
	registry, start := prometheus.NewRegistry(), time.Now()
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "pacer_build_info", Help: "1, with the version.", ConstLabels: prometheus.Labels{"version": o.Version}})
	build.Set(1)
	registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pacer_standby_seconds", Help: "How long the server has waited until it can answer; absent once it does."},
			func() float64 { return time.Since(start).Seconds() }))
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte("ok\n")) // the client may have disconnected
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		t := o.Tokens.Find(access.Bearer(r))
		switch {
		case access.CrossSite(r):
			problem.Write(w, problem.New(http.StatusForbidden, "", "requests of other sites' pages are refused"))
		case o.Tokens.Needed() && (t == nil || !t.Allows(access.ScopeRead, time.Now())):
			w.Header().Set("WWW-Authenticate", `Bearer realm="pacer"`)
			problem.Write(w, problem.New(http.StatusUnauthorized, "", "a bearer token of scope read is needed"))
		default:
			metrics.ServeHTTP(w, r)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		p := problem.New(http.StatusServiceUnavailable, "", o.Why)
		p.RetryAfter = retryAfter
		problem.Write(w, p)
	})
	return mux
}
