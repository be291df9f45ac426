package fail

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/planner"
)

// Exit codes of pacer.
const (
	OK       = 0
	Failed   = 1
	Usage    = 2 // wrong usage, or an unknown name
	NoAnswer = 3 // a valid question without an answer: no plan fits, a search finds nothing
	Partial  = 4 // done in part: unusable rows, failed runs, an interruption
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// WithCode gives an error an exit code.
func WithCode(code int, err error) error { return &exitError{code, err} }

// Usagef is an error of wrong usage.
func Usagef(format string, args ...any) error {
	return WithCode(Usage, fmt.Errorf(format, args...))
}

// NoAnswerf is the error of a valid question without an answer.
func NoAnswerf(format string, args ...any) error {
	return WithCode(NoAnswer, fmt.Errorf(format, args...))
}

// Partialf is the error of work that is done in part.
func Partialf(format string, args ...any) error {
	return WithCode(Partial, fmt.Errorf(format, args...))
}

// Code returns the exit code of an error.
func Code(err error) int {
	var coded *exitError
	var unknown *catalog.UnknownError
	var field *query.FieldError
	var usage cli.ExitCoder // of the flag library
	switch {
	case err == nil:
		return OK
	case errors.As(err, &usage):
		return Usage
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &field) && field.NoAnswer:
		return NoAnswer
	case errors.As(err, &field), errors.As(err, &unknown):
		return Usage
	case errors.Is(err, planner.ErrInfeasible), errors.Is(err, perfmodel.ErrNotCovered),
		errors.Is(err, perfmodel.ErrTooFewPoints), errors.Is(err, measured.ErrNotMeasured):
		return NoAnswer
	}
	return Failed
}
