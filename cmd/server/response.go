package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// errShutdown cancels the requests that outlast Options.Drain.
var errShutdown = errors.New("server: ending")

// A client that reads slower than slowest bytes/s, after a first writeGrace, loses its
// connection.
const (
	writeGrace = 10 * time.Second
	slowest    = 64 << 10
)

// responseWriter holds back the status until the first bytes. A response is written
// at once, so that one that is too large can still become a problem.
type responseWriter struct {
	http.ResponseWriter
	request context.Context // with the requestInfo
	most    int64           // bytes of a response
	memory  lease           // of the body and the answer
	status  int             // 0 = not set yet
	sent    bool            // status is on the wire
	bytes   int64           // written
	lost    error           // of the first failed write
}

// WriteHeader sets the status unless it is set.
func (w *responseWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *responseWriter) Write(b []byte) (int, error) {
	if !w.sent {
		if p := w.refused(b); p != nil {
			w.status, w.sent = p.Status, true
			w.Header().Del("Content-Length")
			problem.Write(w.ResponseWriter, p)
			return len(b), nil
		}
	}
	w.send()
	// Where there is no connection, in tests, there is no deadline either.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeGrace + time.Duration(len(b)/slowest)*time.Second))
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	if err != nil && w.lost == nil {
		w.lost = err
	}
	return n, err
}

// refused returns the problem with an answer that is too large, or has no memory.
func (w *responseWriter) refused(b []byte) *problem.Problem {
	switch {
	case w.status >= 400:
		return nil // problems are short
	case int64(len(b)) > w.most:
		return problem.TooLarge(w.most)
	case w.memory.budget.free != nil && !w.memory.take(len(b)):
		p := problem.New(http.StatusTooManyRequests, problem.TypeOverloaded, "the answers of running requests take the memory they may: retry in 1 s")
		p.RetryAfter = "1"
		return p
	}
	return nil
}

// send sends the status, 200 where the handler set none.
func (w *responseWriter) send() {
	if w.sent {
		return
	}
	w.WriteHeader(http.StatusOK)
	w.sent = true
	w.ResponseWriter.WriteHeader(w.status)
}

// cut closes the connection amid a response, so that no client takes it for complete.
// The request counts with status, unless the client disconnected.
func (w *responseWriter) cut(status int) {
	w.status, w.sent = status, true
	panic(http.ErrAbortHandler)
}

// outcome returns the status to count for a finished request with context ctx.
func (w *responseWriter) outcome(ctx context.Context) int {
	if w.lost != nil || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return problem.StatusClientClosed
	}
	return w.status
}

// Unwrap lets http.ResponseController reach the connection.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
