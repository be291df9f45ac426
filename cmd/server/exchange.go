package server

import (
	"context"
	"errors"
	"net/http"
)

// statusGone is what requests are counted as whose answer nobody was there to
// read any more.
const statusGone = 499

// errEnding is why the requests are told to stop that a server that ends has
// waited for long enough.
var errEnding = errors.New("server: ending")

// exchange is a request under way, seen from its answer. The status is sent with
// the first bytes: an answer is written at once, so that one that is too large
// can still be a problem instead.
type exchange struct {
	http.ResponseWriter
	most   int64 // bytes of an answer
	status int   // 0 until there is one
	sent   bool  // it is
	lost   error // of the write that failed first
}

// WriteHeader makes status that of the answer, unless there is one.
func (e *exchange) WriteHeader(status int) {
	if e.status == 0 {
		e.status = status
	}
}

func (e *exchange) Write(b []byte) (int, error) {
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
func (e *exchange) send() {
	if e.sent {
		return
	}
	e.WriteHeader(http.StatusOK)
	e.sent = true
	e.ResponseWriter.WriteHeader(e.status)
}

// outcome is the status that the request, which has ended and of which ctx is,
// counts as.
func (e *exchange) outcome(ctx context.Context) int {
	if e.lost != nil || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return statusGone
	}
	return e.status
}

// Unwrap lets http.ResponseController reach the connection.
func (e *exchange) Unwrap() http.ResponseWriter { return e.ResponseWriter }
