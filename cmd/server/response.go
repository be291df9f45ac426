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
func (w *responseWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *responseWriter) Write(b []byte) (int, error) {
	if !w.sent && int64(len(b)) > w.most {
		p := answerTooLarge(w.most)
		w.status, w.sent = p.Status, true
		w.Header().Del("Content-Length")
		writeProblem(w.ResponseWriter, p)
		return len(b), nil
	}
	w.send()
	n, err := w.ResponseWriter.Write(b)
	if err != nil && w.lost == nil {
		w.lost = err
	}
	return n, err
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

// outcome returns the status to count for a finished request with context ctx.
func (w *responseWriter) outcome(ctx context.Context) int {
	if w.lost != nil || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return statusClientClosed
	}
	return w.status
}

// Unwrap lets http.ResponseController reach the connection.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
