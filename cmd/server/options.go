package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/snapshot"
	"github.com/pacer-ml/pacer/perfmodel/family"
)

// Options configure a Server. The zero value has no token: see Guarded.
type Options struct {
	// Token is the bearer token of every request; "" = none, and then only requests
	// to a loopback name of this machine are answered.
	Token string
	// TokensFile has further tokens, see access.Token; "" = none. It is read again when it
	// changes.
	TokensFile string
	// AllowedHosts are names of this server besides localhost and loopback addresses.
	// None: with tokens every name is allowed, without only those.
	AllowedHosts []string
	// TLS, if not nil, is the configuration of TLS, see access.TLSConfig.
	TLS *tls.Config
	// ShutdownDelay is the time from the end of readiness until the server refuses new
	// connections, so that load balancers notice; 0 = none.
	ShutdownDelay time.Duration
	// MaxBody is the most bytes of a request's body; 0 = 8 MiB.
	MaxBody int64
	// MaxAnswer is the most bytes of an answer; 0 = 64 MiB.
	MaxAnswer int64
	// MaxBuffered bounds the bytes of the bodies and answers of all requests; 0 = 256
	// MiB, or what one body and one answer need.
	MaxBuffered int64
	// MaxRequests bounds the requests that are worked on at the same time; 0 = 1024.
	MaxRequests int
	// MaxSearches bounds concurrent short searches; half as many long ones run besides.
	// Others wait up to a quarter of Timeout. 0 = twice the cores.
	MaxSearches int
	// Timeout bounds the time of a response, except for fits; 0 = 30 s.
	Timeout time.Duration
	// SimulationsAfter is the number from which IDs of simulations count, such as the Unix time: servers that follow one
	// another on one address then give no ID twice.
	SimulationsAfter int
	// FitTimeout bounds the time of a requested fit; 0 = 10 min.
	FitTimeout time.Duration
	// Drain bounds the time that running requests have at shutdown; 0 = 10 s.
	Drain time.Duration

	// Refit is the time after the last new measurement until its models are
	// refitted; 0 = only on request.
	Refit time.Duration
	// FitFamily is the family refitted; "" = family.Default.
	FitFamily string
	// FitRows is the number of rows each model is fitted to; the others score it.
	// 0 = 8, below 0 = all.
	FitRows int
	// Seed assigns rows to the folds of cross-validations.
	Seed uint64

	// Writer, if not nil, puts what is stored and fitted into an object store, before it is acknowledged.
	Writer *snapshot.Writer
	// Replica, if not nil, keeps the store equal to that of a writer. The server refuses to store or fit then.
	Replica *snapshot.Replica

	// Version is the version in the API's description and the metrics.
	Version string
	// Tracing, if not nil, receives a span for each request, with spans below it.
	Tracing trace.TracerProvider
	// Meters, if not nil, has the metrics of OpenTelemetry for HTTP servers.
	Meters metric.MeterProvider
	// Registry receives the metrics of /metrics; nil = one of the server's own.
	Registry *prometheus.Registry
	// AccessLog receives a line for each request; nil drops them.
	AccessLog *slog.Logger
	// AuditLog receives a line for each request that needs scope fit or admin, also a refused one; nil drops them.
	AuditLog *slog.Logger
	// Log receives warnings and errors for operators; nil drops them.
	Log *slog.Logger
}

// Validate reports an option out of range.
func (o Options) Validate() error {
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"timeout", o.Timeout}, {"fit timeout", o.FitTimeout}, {"drain", o.Drain}, {"refit", o.Refit}, {"shutdown delay", o.ShutdownDelay}} {
		if d.v < 0 {
			return fmt.Errorf("server: %s %v is negative", d.name, d.v)
		}
	}
	switch {
	case o.Writer != nil && o.Replica != nil:
		return errors.New("server: want a writer or a replica, not both")
	case o.Replica != nil && o.Refit > 0:
		return errors.New("server: a replica has the models of its writer: want no refit")
	case o.MaxBody < 0:
		return fmt.Errorf("server: most bytes of a body %d is negative", o.MaxBody)
	case o.MaxAnswer < 0:
		return fmt.Errorf("server: most bytes of an answer %d is negative", o.MaxAnswer)
	case o.MaxBuffered < 0:
		return fmt.Errorf("server: most bytes of bodies and answers %d is negative", o.MaxBuffered)
	case o.MaxRequests < 0 || o.MaxSearches < 0:
		return fmt.Errorf("server: %d requests, %d searches at the same time: must not be negative", o.MaxRequests, o.MaxSearches)
	}
	if o.FitFamily == "" {
		return nil
	}
	_, err := family.Lookup(o.FitFamily)
	return err
}

func (o Options) withDefaults() Options {
	o.MaxBody = cmp.Or(o.MaxBody, 8<<20)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, 64<<20)
	o.MaxBuffered = cmp.Or(o.MaxBuffered, max(256<<20, o.MaxBody+o.MaxAnswer))
	o.MaxRequests = cmp.Or(o.MaxRequests, 1024)
	o.MaxSearches = cmp.Or(o.MaxSearches, 2*runtime.GOMAXPROCS(0))
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.FitTimeout = cmp.Or(o.FitTimeout, 10*time.Minute)
	o.Drain = cmp.Or(o.Drain, 10*time.Second)
	o.FitFamily = cmp.Or(o.FitFamily, family.Default)
	o.FitRows = cmp.Or(o.FitRows, 8)
	o.Version = cmp.Or(o.Version, "unknown")
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Unix begins the address of a socket file.
const Unix = "unix:"

// Guarded reports whether a server at addr, host:port or unix:PATH, needs a token: whether other
// machines can reach it.
func Guarded(addr string) (bool, error) {
	if strings.HasPrefix(addr, Unix) {
		return false, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true, fmt.Errorf("server: address %q, want a form like 127.0.0.1:8470: %w", addr, err)
	}
	return !access.Loopback(host), nil
}
