package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Types of problems besides those of packages answer and remote.
const (
	TypeOverloaded = "urn:pacer:problem:overloaded"
	TypeTimeout    = "urn:pacer:problem:timeout"
	TypeTooLarge   = "urn:pacer:problem:answer-too-large"
)

// Problem is an error response (RFC 9457), with the planner's explanation where no
// plan answers a request.
type Problem struct {
	huma.ErrorModel
	Infeasible *query.InfeasibleRow `json:"infeasible,omitempty"`
	Planner    *remote.Infeasible   `json:"planner,omitempty"` // the same in full, for package remote

	RetryAfter string `json:"-"` // seconds, of the header; "" = none
}

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	if p.RetryAfter == "" {
		return nil
	}
	return http.Header{"Retry-After": {p.RetryAfter}}
}

// KeyOfAnother is the problem with an idempotency key that came with another body before.
func KeyOfAnother(key string) *Problem {
	return New(http.StatusUnprocessableEntity, "", fmt.Sprintf("Idempotency-Key %q was that of another body: use a new one for each request", Echo(key)))
}

// Of returns the error response of err.
func Of(err error) *Problem {
	var ready *Problem
	if errors.As(err, &ready) {
		return ready
	}
	if p := answer.ProblemOf(err); p.Status < http.StatusInternalServerError {
		return problemWith(p, err)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return New(http.StatusServiceUnavailable, TypeTimeout, "timeout: "+err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, store.ErrClosed):
		return New(http.StatusServiceUnavailable, "", "the server is shutting down")
	case errors.Is(err, store.ErrNoSpace):
		return New(http.StatusInsufficientStorage, "", "the disk of the store is nearly full: nothing was stored")
	case errors.Is(err, syscall.ENOSPC): // of a fit, which writes models
		return New(http.StatusInsufficientStorage, "", "the disk of the server is full")
	}
	return New(http.StatusInternalServerError, "", "an internal error, which was logged")
}

// problemWith returns p, the problem of err, as a response.
func problemWith(p answer.Problem, err error) *Problem {
	if len(p.Errors) == 0 {
		p.Type = remote.TypeOf(err)
	}
	out := New(p.Status, p.Type, p.Detail)
	out.Infeasible = p.Infeasible
	for _, e := range p.Errors {
		out.Errors = append(out.Errors, &huma.ErrorDetail{Location: e.Location, Message: e.Message, Value: e.Value})
	}
	return out
}

// New returns a problem with a status of HTTP and a type, "" = none besides the status.
func New(status int, kind, detail string) *Problem {
	return &Problem{ErrorModel: huma.ErrorModel{Type: kind, Status: status, Title: http.StatusText(status), Detail: detail}}
}

// TooLarge is the problem with a response of more than most bytes.
func TooLarge(most int64) *Problem {
	return New(http.StatusUnprocessableEntity, TypeTooLarge, fmt.Sprintf("the answer is larger than %d bytes: ask for fewer plans with top, or for less at once", most))
}

// Write writes p as the response.
func Write(w http.ResponseWriter, p *Problem) {
	if w.Header().Get("Content-Type") == GRPCType { // of rpcOnly
		writeGRPC(w, p)
		return
	}
	Shorten(&p.ErrorModel)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	if p.RetryAfter != "" {
		w.Header().Set("Retry-After", p.RetryAfter)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have disconnected
}

// MaxEcho bounds the bytes of a request's value in a response.
const MaxEcho = 256

// Shorten cuts the values of a request in its error response.
func Shorten(p *huma.ErrorModel) {
	const most = 20
	if len(p.Errors) > most {
		p.Errors = p.Errors[:most]
	}
	p.Detail = Cut(p.Detail, 16*MaxEcho)
	for _, e := range p.Errors {
		e.Message = Cut(e.Message, 16*MaxEcho)
		switch v := e.Value.(type) {
		case string:
			e.Value = Cut(v, MaxEcho)
		case nil, bool, float64, int, int64:
		default:
			if b, err := json.Marshal(v); err != nil || len(b) > MaxEcho {
				e.Value = nil
			}
		}
	}
}

// Echo returns a value of a request as answers and logs repeat it.
func Echo(s string) string { return Cut(s, MaxEcho) }

// Cut returns the first n bytes of s, with dots where it is longer.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// Shortened is a huma.Transformer that shortens huma's own problems.
func Shortened(_ huma.Context, _ string, v any) (any, error) {
	switch p := v.(type) {
	case *huma.ErrorModel:
		Shorten(p)
	case *Problem:
		Shorten(&p.ErrorModel)
	}
	return v, nil
}
