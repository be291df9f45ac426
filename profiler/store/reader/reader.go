package reader

import (
	"context"
	"errors"
	"iter"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ErrLocked is wrapped by the error of a store that another process has open.
var ErrLocked = errors.New("store in use")

// Filter selects rows. An empty list selects all; names must match exactly.
type Filter struct {
	Models, Accelerators, Sources []string
	Outcomes                      []spec.Outcome
}

// Tally is the number of rows with one model, accelerator, source and outcome.
type Tally struct {
	Model       string       `json:"model"`
	Accelerator string       `json:"accelerator"`
	Source      string       `json:"source"`
	Outcome     spec.Outcome `json:"outcome"`
	Rows        int          `json:"rows"`
}

// Store is what readers call. *store.DB is one.
type Store interface {
	// Query returns the rows that a filter selects, ordered by model, accelerator, source and identity.
	Query(context.Context, Filter) iter.Seq2[spec.Measurement, error]
	// Summary counts the rows by model, accelerator, source and outcome, in that order.
	Summary(context.Context) ([]Tally, error)
	// Measured returns the accelerators with micro-benchmarks, each with its spec.Accelerator.Measured, sorted by name.
	Measured(context.Context) ([]spec.Accelerator, error)
	// MeasuredText returns spec.Accelerator.Measured of an accelerator by name, "" if it has no micro-benchmarks.
	MeasuredText(ctx context.Context, accelerator string) (string, error)
}
