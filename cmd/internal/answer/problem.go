package answer

import (
	"context"
	"errors"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/planner"
)

// Types of problems.
const (
	TypeUnknownName = "urn:pacer:problem:unknown-name"
	TypeNoAnswer    = "urn:pacer:problem:no-answer"
)

// Problem says why a request has no answer, in the form of RFC 9457.
type Problem struct {
	Type       string               `json:"type,omitempty"`
	Title      string               `json:"title"`
	Status     int                  `json:"status"`
	Detail     string               `json:"detail"`
	Errors     []FieldProblem       `json:"errors,omitempty"`
	Infeasible *query.InfeasibleRow `json:"infeasible,omitempty"` // where no plan fits
}

// FieldProblem is what is wrong with one field of a request.
type FieldProblem struct {
	Message  string `json:"message"`
	Location string `json:"location"`
	Value    any    `json:"value,omitempty"`
}

// ProblemOf returns the problem of err. One that the request is not at fault for has status 500 and no detail.
func ProblemOf(err error) Problem {
	var (
		field   *query.FieldError
		unknown *catalog.UnknownError
	)
	switch {
	case errors.As(err, &field):
		p := Problem{Status: 422, Title: "Unprocessable Entity", Detail: err.Error(), Errors: []FieldProblem{{field.Error(), "body." + field.Field, field.Value}}}
		if field.NoAnswer {
			p.Type = TypeNoAnswer
		}
		return p
	case errors.As(err, &unknown):
		what := strings.TrimSuffix(unknown.What, " type")
		return Problem{Type: TypeUnknownName, Status: 404, Title: "Not Found", Detail: err.Error(), Errors: []FieldProblem{{err.Error(), "body." + what, unknown.Name}}}
	case errors.Is(err, perfmodel.ErrNotCovered), errors.Is(err, perfmodel.ErrTooFewPoints), errors.Is(err, planner.ErrInfeasible):
		return Problem{Status: 422, Title: "Unprocessable Entity", Detail: err.Error(), Infeasible: query.NewInfeasibleRow(err)}
	case errors.Is(err, context.DeadlineExceeded):
		return Problem{Status: 503, Title: "Service Unavailable", Detail: "this takes too long in a browser: ask about fewer devices, or a server"}
	case errors.Is(err, errNeedsServer):
		return Problem{Status: 501, Title: "Not Implemented", Detail: err.Error()}
	}
	return Problem{Status: 500, Title: "Internal Server Error", Detail: "an internal error"}
}
