package server

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/klauspost/compress/zstd"
)

// bodies are buffers of finished requests.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keepBody is the largest buffer to reuse, bytes.
const keepBody = 64 << 10

// Errors of a body that is not read to its end.
var (
	errMemory   = errors.New("no memory is left")
	errEncoding = errors.New("unknown content encoding")
)

// withBody reads and checks the body of a request before its handler runs. A slow
// client holds only the bytes that it sent. Where the answer to the same body is
// cached, the handler does not run.
func (s *Server) withBody(o *endpoint, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		buf := bodies.Get().(*bytes.Buffer)
		defer func() {
			if buf.Cap() <= keepBody {
				buf.Reset()
				bodies.Put(buf)
			}
		}()
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "" && kind != "application/json" {
			writeProblem(w, newProblem(http.StatusUnsupportedMediaType, "", fmt.Sprintf("content type %q: want application/json", cut(kind, maxEcho))))
			return
		}
		if err := s.readBody(buf, w, r); err != nil {
			w.Header().Set("Connection", "close") // the rest of the body is not read
			s.bodyProblem(w, err)
			return
		}
		var key answerKey
		if o.weight == search {
			key = s.answers.key(o.path, buf.Bytes(), s.models.Generation())
			if answer := s.answers.get(key); answer != nil {
				s.metrics.cached.Inc()
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(answer) // the client may have disconnected
				return
			}
		}
		if p := s.badBody(o, buf.Bytes()); p != nil {
			writeProblem(w, p)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(buf.Bytes()))
		if o.weight == search {
			w = &answerRecorder{ResponseWriter: w, keep: func(b []byte) { s.answers.put(key, b) }}
		}
		next(w, r)
	}
}

// badBody returns the problem with a body by its syntax and its schema.
func (s *Server) badBody(o *endpoint, body []byte) *Problem {
	if o.plain != nil && o.plain(body) {
		return nil
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return newProblem(http.StatusBadRequest, "", "request body is required")
	}
	if p := malformed(body); p != nil {
		return p
	}
	return invalid(s.api.OpenAPI().Components.Schemas, o.schema, body)
}

func (s *Server) readBody(buf *bytes.Buffer, w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > s.o.MaxBody {
		return &http.MaxBytesError{Limit: s.o.MaxBody}
	}
	from, end, err := decompressed(r.Header.Get("Content-Encoding"), http.MaxBytesReader(w, r.Body, s.o.MaxBody), s.o.MaxBody)
	if err != nil {
		return err
	}
	defer end()
	bounded := &io.LimitedReader{R: &metered{from, s.memory.leaseOf(w)}, N: s.o.MaxBody + 1}
	if _, err := buf.ReadFrom(bounded); err != nil {
		return err
	}
	if bounded.N == 0 {
		return &http.MaxBytesError{Limit: s.o.MaxBody}
	}
	// From here on the connection reads the next request. A deadline that passes
	// meanwhile would end the context of this one.
	err = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if errors.Is(err, http.ErrNotSupported) { // not a connection, in tests
		return nil
	}
	return err
}

// decompressed returns a reader of the plain body. Its memory is bounded by most.
func decompressed(encoding string, body io.Reader, most int64) (r io.Reader, end func(), err error) {
	switch strings.ToLower(encoding) {
	case "", "identity":
		return body, func() {}, nil
	case "gzip":
		r, err = gzip.NewReader(body)
		return r, func() {}, err
	case "zstd":
		d, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(uint64(max(most, 8<<20)))) // 8 MiB: what encoders take
		if err != nil {
			return nil, nil, err
		}
		return d, d.Close, nil
	}
	return nil, nil, fmt.Errorf("%w %q: want gzip or zstd", errEncoding, cut(encoding, maxEcho))
}

// bodyProblem answers a request with a body that could not be read.
func (s *Server) bodyProblem(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	var slow net.Error
	switch {
	case errors.Is(err, errMemory):
		writeProblem(w, s.noMemory())
	case errors.Is(err, errEncoding):
		writeProblem(w, newProblem(http.StatusUnsupportedMediaType, "", err.Error()))
	case errors.As(err, &large):
		writeProblem(w, newProblem(http.StatusRequestEntityTooLarge, "", fmt.Sprintf("the body is larger than %d bytes", s.o.MaxBody)))
	case errors.As(err, &slow) && slow.Timeout():
		writeProblem(w, newProblem(http.StatusRequestTimeout, "", "the body did not arrive in time"))
	default:
		writeProblem(w, newProblem(http.StatusBadRequest, "", "the body cannot be read: "+err.Error()))
	}
}

// noMemory refuses a request with a body that the budget has no memory for.
func (s *Server) noMemory() *Problem {
	return s.busy("memory", time.Second, fmt.Sprintf("the bodies and answers of running requests take the %d bytes they may", s.o.MaxBuffered))
}

// bodySchema returns the schema of the JSON body of an operation.
func bodySchema(op *huma.Operation) *huma.Schema {
	if op == nil || op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return nil
	}
	return op.RequestBody.Content["application/json"].Schema
}
