package server

import (
	"context"
	"errors"
	"net/http"
)

// statusClientClosed (499) counts requests with a client that disconnected before
// the response.
const statusClientClosed = 499

// errShutdown cancels the requests that outlast Options.Drain.
var errShutdown = errors.New("server: ending")

// responseWriter holds back the status until the first bytes. A response is written
// at once, so that one that is too large can still become a problem.
type responseWriter struct {
	http.ResponseWriter
	most   int64 // bytes of a response
	status int   // 0 = not set yet
	sent   bool  // status is on the wire
	lost   error // of the first failed write
}

// WriteHeader sets the status unless it is set.
func (e *responseWriter) WriteHeader(status int) {
	if e.status == 0 {
		e.status = status
	}
}

func (e *responseWriter) Write(b []byte) (int, error) {
	if !e.sent && int64(len(b)) > e.most {
		p := answerTooLarge(e.most)
		e.status, e.sent = p.Status, true
		e.Header().Del("Content-Length")
		writeProblem(e.ResponseWriter, p)
		return len(b), nil
	}
	e.send()
	n, err := e.ResponseWriter.Write(b)
	if err != nil && e.lost == nil {
		e.lost = err
	}
	return n, err
}

// send sends the status, 200 where the handler set none.
func (e *responseWriter) send() {
	if e.sent {
		return
	}
	e.WriteHeader(http.StatusOK)
	e.sent = true
	e.ResponseWriter.WriteHeader(e.status)
}

// outcome returns the status to count for a finished request with context ctx.
func (e *responseWriter) outcome(ctx context.Context) int {
	if e.lost != nil || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return statusClientClosed
	}
	return e.status
}

// Unwrap lets http.ResponseController reach the connection.
func (e *responseWriter) Unwrap() http.ResponseWriter { return e.ResponseWriter }
