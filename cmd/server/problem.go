package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Types of problems besides those of packages answer and remote.
const (
	typeOverloaded = "urn:pacer:problem:overloaded"
	typeTimeout    = "urn:pacer:problem:timeout"
	typeTooLarge   = "urn:pacer:problem:answer-too-large"
)

// Problem is an error response (RFC 9457), with the planner's explanation where no
// plan answers a request.
type Problem struct {
	huma.ErrorModel
	Infeasible *query.InfeasibleRow `json:"infeasible,omitempty"`
	Planner    *remote.Infeasible   `json:"planner,omitempty"` // the same in full, for package remote

	retryAfter string // seconds, of the header; "" = none
}

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	if p.retryAfter == "" {
		return nil
	}
	return http.Header{"Retry-After": {p.retryAfter}}
}

// problem returns the error response of err.
func problem(err error) *Problem {
	var ready *Problem
	if errors.As(err, &ready) {
		return ready
	}
	if p := answer.ProblemOf(err); p.Status < http.StatusInternalServerError {
		return problemWith(p, err)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return newProblem(http.StatusServiceUnavailable, typeTimeout, "timeout: "+err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, store.ErrClosed):
		return newProblem(http.StatusServiceUnavailable, "", "the server is shutting down")
	case errors.Is(err, store.ErrNoSpace):
		return newProblem(http.StatusInsufficientStorage, "", "the disk of the store is nearly full: nothing was stored")
	}
	return newProblem(http.StatusInternalServerError, "", "an internal error, which was logged")
}

// problemWith returns p, the problem of err, as a response.
func problemWith(p answer.Problem, err error) *Problem {
	if len(p.Errors) == 0 {
		p.Type = remote.TypeOf(err)
	}
	out := newProblem(p.Status, p.Type, p.Detail)
	out.Infeasible = p.Infeasible
	for _, e := range p.Errors {
		out.Errors = append(out.Errors, &huma.ErrorDetail{Location: e.Location, Message: e.Message, Value: e.Value})
	}
	return out
}

func newProblem(status int, kind, detail string) *Problem {
	return &Problem{ErrorModel: huma.ErrorModel{Type: kind, Status: status, Title: http.StatusText(status), Detail: detail}}
}

// answerTooLarge is the problem with a response of more than most bytes.
func answerTooLarge(most int64) *Problem {
	return newProblem(http.StatusUnprocessableEntity, typeTooLarge, fmt.Sprintf("the answer is larger than %d bytes: ask for fewer plans with top, or for less at once", most))
}

// writeProblem writes p as the response.
func writeProblem(w http.ResponseWriter, p *Problem) {
	if w.Header().Get("Content-Type") == rpcType { // of rpcOnly
		writeRPCProblem(w, p)
		return
	}
	shorten(&p.ErrorModel)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	if p.retryAfter != "" {
		w.Header().Set("Retry-After", p.retryAfter)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have disconnected
}

// maxEcho bounds the bytes of a request's value in a response.
const maxEcho = 256

// shorten cuts the values of a request in its error response.
func shorten(p *huma.ErrorModel) {
	const most = 20
	if len(p.Errors) > most {
		p.Errors = p.Errors[:most]
	}
	p.Detail = cut(p.Detail, 16*maxEcho)
	for _, e := range p.Errors {
		e.Message = cut(e.Message, 16*maxEcho)
		switch v := e.Value.(type) {
		case string:
			e.Value = cut(v, maxEcho)
		case nil, bool, float64, int, int64:
		default:
			if b, err := json.Marshal(v); err != nil || len(b) > maxEcho {
				e.Value = nil
			}
		}
	}
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// shortened is a huma.Transformer that shortens huma's own problems.
func shortened(_ huma.Context, _ string, v any) (any, error) {
	switch p := v.(type) {
	case *huma.ErrorModel:
		shorten(p)
	case *Problem:
		shorten(&p.ErrorModel)
	}
	return v, nil
}
