package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/server/answercache"
	"github.com/pacer-ml/pacer/cmd/server/bodycheck"
	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// bodies are buffers of finished requests.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keepBody is the largest buffer to reuse, bytes.
const keepBody = 64 << 10

// errMemory ends the reading of a body.
var errMemory = errors.New("no memory is left")

// withBody reads and checks the body of a request before its handler runs. A slow
// client holds only the bytes that it sent. Where the answer to the same body is
// cached, the handler does not run.
func (s *Server) withBody(o *endpoint, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, buf := contextOf(w), bodies.Get().(*bytes.Buffer)
		defer func() {
			if buf.Cap() <= keepBody {
				buf.Reset()
				bodies.Put(buf)
			}
		}()
		if kind := r.Header.Get("Content-Type"); !isJSON(kind) {
			problem.Write(w, problem.New(http.StatusUnsupportedMediaType, "", fmt.Sprintf("content type %q: want application/json", problem.Echo(kind))))
			return
		}
		if err := s.readBody(buf, w, r); err != nil {
			w.Header().Set("Connection", "close") // the rest of the body is not read
			s.bodyProblem(w, err)
			return
		}
		if o.weight == search {
			patient(w)
			key := s.answers.Key(o.path, buf.Bytes(), s.models.Generation())
			if answer := s.answers.Get(key); answer != nil {
				s.metrics.cached.Inc()
				writeJSON(w, answer)
				return
			}
			w = &answercache.Recorder{ResponseWriter: w, Keep: func(b []byte) { s.answers.Put(key, b) }}
		}
		if o.quick != nil && s.answerQuick(ctx, o, w, buf) {
			return
		}
		patient(w)
		if p := s.badBody(o, buf.Bytes()); p != nil {
			problem.Write(w, p)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(buf.Bytes()))
		r.Header.Set("Content-Type", "application/json") // huma knows no other spelling
		next(w, r.WithContext(ctx))
	}
}

// patient removes the deadline of the body, once it is read. From there on the connection reads the next request, and a
// deadline that passes meanwhile would end the context of this one.
func patient(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it may be closed, which ends the context
}

var jsonType = []string{"application/json"}

// writeJSON writes an answer.
func writeJSON(w http.ResponseWriter, b []byte) {
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(b) // the client may have disconnected
}

// isJSON reports whether a Content-Type is that of JSON, as none is.
func isJSON(kind string) bool {
	if kind == "" || kind == "application/json" {
		return true
	}
	parsed, _, err := mime.ParseMediaType(kind)
	return err == nil && parsed == "application/json"
}

// quickAnswer answers a body without the operation's handler.
type quickAnswer struct {
	cost   float64 // as of costOf
	answer func(ctx context.Context) ([]byte, error)
}

// answerQuick writes the answer of o.quick, or reports that there is none.
func (s *Server) answerQuick(ctx context.Context, o *endpoint, w http.ResponseWriter, body *bytes.Buffer) bool {
	q := o.quick(w, body)
	if q == nil {
		return false
	}
	if o.weight == search { // others do not wait, and set a deadline where they take long
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.o.Timeout)
		defer cancel()
	}
	out, err := admitted(ctx, s, o.weight, q.cost, func() (out []byte, err error) {
		ctx, span := s.trace.span(ctx, o.id)
		defer func() { endSpan(span, err) }()
		return q.answer(ctx)
	})
	if err != nil {
		problem.Write(w, failure(ctx, err))
		return true
	}
	writeJSON(w, append(out, '\n'))
	return true
}

// badBody returns the problem with a body by its syntax and its schema.
func (s *Server) badBody(o *endpoint, body []byte) *problem.Problem {
	if len(bytes.TrimSpace(body)) == 0 {
		return problem.New(http.StatusBadRequest, "", "request body is required")
	}
	if p := bodycheck.Malformed(body); p != nil {
		return p
	}
	return bodycheck.Invalid(s.api.OpenAPI().Components.Schemas, o.schema, body)
}

func (s *Server) readBody(buf *bytes.Buffer, w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > s.o.MaxBody {
		return &http.MaxBytesError{Limit: s.o.MaxBody}
	}
	sent := r.Body
	if r.ContentLength < 0 { // else net/http reads no more
		sent = http.MaxBytesReader(w, r.Body, s.o.MaxBody)
	}
	plain, end, err := bodycheck.Decompressed(r.Header.Get("Content-Encoding"), sent, s.o.MaxBody)
	if err != nil {
		return err
	}
	defer end()
	_, err = buf.ReadFrom(&metered{r: plain, lease: s.memory.leaseOf(w), most: s.o.MaxBody})
	return err
}

// bodyProblem answers a request with a body that could not be read.
func (s *Server) bodyProblem(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	var slow net.Error
	switch {
	case errors.Is(err, errMemory):
		problem.Write(w, s.noMemory())
	case errors.Is(err, bodycheck.ErrEncoding):
		problem.Write(w, problem.New(http.StatusUnsupportedMediaType, "", err.Error()))
	case errors.As(err, &large):
		problem.Write(w, problem.New(http.StatusRequestEntityTooLarge, "", fmt.Sprintf("the body is larger than %d bytes", s.o.MaxBody)))
	case errors.As(err, &slow) && slow.Timeout():
		problem.Write(w, problem.New(http.StatusRequestTimeout, "", "the body did not arrive in time"))
	default:
		problem.Write(w, problem.New(http.StatusBadRequest, "", "the body cannot be read: "+err.Error()))
	}
}

// noMemory refuses a request with a body that the budget has no memory for.
func (s *Server) noMemory() *problem.Problem {
	return s.busy("memory", time.Second, fmt.Sprintf("the bodies and answers of running requests take the %d bytes they may", s.o.MaxBuffered))
}

// bodySchema returns the schema of the JSON body of an operation.
func bodySchema(op *huma.Operation) *huma.Schema {
	if op == nil || op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return nil
	}
	return op.RequestBody.Content["application/json"].Schema
}
