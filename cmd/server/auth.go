package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/pacer-ml/pacer/cmd/server/page"
)

// open are the paths without a token, for load balancers.
var open = map[string]bool{"/healthz": true, "/readyz": true}

// auth demands the token. Without a token it admits only requests to a loopback
// name of this machine, so that a web page cannot reach the server by DNS
// rebinding. It refuses cross-site requests of browsers.
func (s *Server) auth(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(s.o.Token))
	crossSite := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case crossSite.Check(r) != nil:
			writeProblem(w, newProblem(http.StatusForbidden, "", "requests of other sites' pages are refused"))
		case s.o.Token == "" && !loopback(hostOf(r)):
			writeProblem(w, newProblem(http.StatusForbidden, "", fmt.Sprintf("host %q: without a token only requests to this machine by the name localhost or a loopback address are answered", cut(r.Host, maxEcho))))
		case s.o.Token != "" && !open[r.URL.Path] && !page.Public(r.URL.Path) && !sameToken(want, r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="pacer"`)
			writeProblem(w, newProblem(http.StatusUnauthorized, "", "a bearer token is needed: Authorization: Bearer TOKEN"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// sameToken compares in constant time, whatever the lengths.
func sameToken(want [sha256.Size]byte, r *http.Request) bool {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(token))
	return strings.EqualFold(kind, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// hostOf returns the host a request names, without the port.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return strings.Trim(r.Host, "[]")
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
		w.lost, w.sent = http.ErrAbortHandler, true
		panic(v)
	}
	if err, ok := v.(error); ok && w.lost != nil && errors.Is(err, w.lost) {
		return
	}
	s.metrics.panics.Inc()
	s.o.Log.Error("panic", "path", r.URL.Path, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
	if w.sent {
		w.status = http.StatusInternalServerError
		panic(http.ErrAbortHandler)
	}
	w.status = 0
	writeProblem(w, newProblem(http.StatusInternalServerError, "", "an internal error, which was logged"))
}
