package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/cmd/server/page"
	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// public reports whether a path needs no token: the checks of load balancers, and the files of the page, which have
// no data.
func public(path string) bool {
	return path == "/healthz" || path == "/readyz" || page.Public(path) || strings.HasPrefix(path, healthService)
}

// A request without a valid token is answered after refusalDelay, so that guesses are
// slow; beyond maxRefusals at a time it is answered at once with 429.
const (
	refusalDelay = 200 * time.Millisecond
	maxRefusals  = 100
)

// auth demands a token with the scope of the route. Without tokens it admits only
// requests to a loopback name of this machine or an allowed host, so that a web page
// cannot reach the server by DNS rebinding. It refuses all requests of pages of other
// sites.
func (s *Server) auth(m *router) http.Handler {
	refusals := make(chan struct{}, maxRefusals)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case access.CrossSite(r) && !page.Public(r.URL.Path): // others may link to the page
			problem.Write(w, problem.New(http.StatusForbidden, "", "requests of other sites' pages are refused"))
		case !s.allowedHost(r):
			problem.Write(w, problem.New(http.StatusForbidden, "", fmt.Sprintf("host %q: want localhost, a loopback address or a host of --allowed-hosts", problem.Echo(r.Host))))
		case !s.tokens.Needed() || public(r.URL.Path):
			m.ServeHTTP(w, r)
		default:
			info, scope := requestOf(contextOf(w)), m.scopeOf(r)
			t := s.tokens.Find(access.Bearer(r))
			switch {
			case t == nil || t.Expired(time.Now()):
				s.unauthorized(w, r, refusals, t)
			case !t.Allows(scope, time.Now()):
				info.token = t.Name
				s.o.Log.Warn("token refused", "id", info.id, "token", t.Name, "wants", scope)
				problem.Write(w, problem.New(http.StatusForbidden, "", fmt.Sprintf("token %q has scopes %q, this request needs %q", t.Name, t.Scopes, scope)))
			default:
				info.token, info.allowed = t.Name, true
				m.ServeHTTP(w, r)
			}
		}
	})
}

// unauthorized logs and answers a request without a valid token, slowly.
func (s *Server) unauthorized(w http.ResponseWriter, r *http.Request, refusals chan struct{}, t *access.Token) {
	why := "a bearer token is needed: Authorization: Bearer TOKEN"
	if t != nil {
		why = fmt.Sprintf("token %q expired at %s", t.Name, t.Expires.Format(time.RFC3339))
	}
	s.metrics.refused.WithLabelValues("token").Inc()
	s.o.Log.Warn("no valid token", "id", requestOf(contextOf(w)).id, "remote", r.RemoteAddr, "path", problem.Echo(r.URL.Path))
	select {
	case refusals <- struct{}{}:
		defer func() { <-refusals }()
	default:
		s.overloaded(w, "token", time.Second, "too many requests without a valid token")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), refusalDelay)
	defer cancel()
	<-ctx.Done()
	w.Header().Set("WWW-Authenticate", `Bearer realm="pacer"`)
	problem.Write(w, problem.New(http.StatusUnauthorized, "", why))
}

// allowedHost reports whether the host that r names is one of this server.
func (s *Server) allowedHost(r *http.Request) bool {
	host := access.Host(r.Host)
	if len(s.o.AllowedHosts) == 0 && s.tokens.Needed() || access.Loopback(host) {
		return true
	}
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && addr.Network() == "unix" {
		return true
	}
	return slices.ContainsFunc(s.o.AllowedHosts, func(allowed string) bool { return strings.EqualFold(allowed, host) })
}

// recovered, deferred, answers a panic with 500, or closes the connection where the
// response has begun. A client that disconnects is no defect, although huma panics
// with the error of the write.
func (s *Server) recovered(w *responseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // the value itself, as net/http does
		if w.status < 500 {
			w.lost = http.ErrAbortHandler
		}
		w.sent = true
		panic(v)
	}
	if err, ok := v.(error); ok && w.lost != nil && errors.Is(err, w.lost) {
		return
	}
	s.metrics.panics.Inc()
	s.o.Log.Error("panic", "id", requestOf(w.request).id, "path", r.URL.Path, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
	if w.sent {
		w.cut(http.StatusInternalServerError)
	}
	w.status = 0
	problem.Write(w, problem.New(http.StatusInternalServerError, "", "an internal error, which was logged"))
}
