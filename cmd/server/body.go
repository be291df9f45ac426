package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// bodies are buffers of finished requests.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keepBody is the largest buffer to reuse, bytes.
const keepBody = 64 << 10

// withBody reads the body of a request before its handler runs, so that a slow
// client does not use up the handler's time. Where precheck, which may be nil,
// returns true, next does not run.
func (s *Server) withBody(precheck func(http.ResponseWriter, *http.Request, []byte) bool, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		buf := bodies.Get().(*bytes.Buffer)
		defer func() {
			if buf.Cap() <= keepBody {
				buf.Reset()
				bodies.Put(buf)
			}
		}()
		if err := s.readBody(buf, w, r); err != nil {
			w.Header().Set("Connection", "close") // the rest of the body is not read
			writeProblem(w, bodyProblem(err, s.o.MaxBody))
			return
		}
		if precheck != nil && precheck(w, r, buf.Bytes()) {
			return
		}
		if p := malformed(buf.Bytes()); p != nil {
			writeProblem(w, p)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(buf.Bytes()))
		next(w, r)
	}
}

func (s *Server) readBody(buf *bytes.Buffer, w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > s.o.MaxBody {
		return &http.MaxBytesError{Limit: s.o.MaxBody}
	}
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, s.o.MaxBody)); err != nil {
		return err
	}
	// From here on the connection reads the next request. A deadline that passes
	// meanwhile would end the context of this one.
	err := http.NewResponseController(w).SetReadDeadline(time.Time{})
	if errors.Is(err, http.ErrNotSupported) { // not a connection, in tests
		return nil
	}
	return err
}

func bodyProblem(err error, most int64) *Problem {
	var large *http.MaxBytesError
	var slow net.Error
	switch {
	case errors.As(err, &large):
		return newProblem(http.StatusRequestEntityTooLarge, "", fmt.Sprintf("the body is larger than %d bytes", most))
	case errors.As(err, &slow) && slow.Timeout():
		return newProblem(http.StatusRequestTimeout, "", "the body did not arrive in time")
	}
	return newProblem(http.StatusBadRequest, "", "the body cannot be read: "+err.Error())
}
