package perfmodel

import (
	"context"
	"encoding"
	"errors"
	"iter"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Sentinels callers branch on; errors that wrap them name the value.
var (
	ErrTooFewPoints = errors.New("too few measurements")
	// ErrNotCovered means the performance model has no opinion on a Config: no
	// fitted parameters for its key, or figures it needs are unknown.
	ErrNotCovered = errors.New("not covered by this performance model")
)

// Predictor tells the throughput and memory of a Config. Implementations are
// safe for concurrent use. A prediction is finite and positive, or an error.
type Predictor interface {
	Predict(ctx context.Context, c spec.Config) (spec.Prediction, error)
}

// Preparer is an optional interface of Predictors that answer many plans of
// one model on the same machines faster than one Config at a time.
type Preparer interface {
	// Prepare fixes everything in c but its plan. The function returned
	// predicts time alone (MemoryBytes is 0) and is safe for concurrent use.
	Prepare(c spec.Config) (func(p spec.Plan) (spec.Prediction, error), error)
}

// Bounder is an optional interface of Predictors that know, cheaply, how fast a
// plan is at best: a search need not look further at one that is slower than
// what it has.
type Bounder interface {
	// StepAtLeast fixes everything in c but its plan. The function returned gives
	// seconds that the predicted step of a normal plan takes at least. It is not
	// safe for concurrent use. It is nil where nothing is known.
	StepAtLeast(c spec.Config) (func(p *spec.Plan) float64, error)
}

// Fitted is a Predictor with parameters that can be kept on disk; Family.Load
// reads what MarshalBinary wrote.
type Fitted interface {
	Predictor
	encoding.BinaryMarshaler
}

// Family is one kind of performance model: a formula and how to fit it.
type Family struct {
	Name string
	Doc  string // one line: what it is and its source

	// Fit estimates the parameters for the one (model, accelerator) key that
	// all of data must share. Rows that are not OK, or in doubt, are left out.
	// The Card's error figures are those of rows the fit did not see.
	Fit func(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (Fitted, Card, error)
	// Load restores a Fitted.
	Load func(b []byte) (Fitted, error)
	// Choose picks which n of the candidate configurations to measure or fit
	// on, from their configuration alone; it returns their indices, ascending.
	// Nil when the family does not care.
	Choose func(candidates []spec.Config, n int) []int
	// Gain says what measuring each configuration of space would teach, given
	// what has been measured; nil when the family cannot tell. All of space and
	// have share one key; have may be empty, and its rows that are not Usable
	// teach nothing. It returns one Gain for each of space, in its order.
	Gain func(ctx context.Context, have []spec.Measurement, space []spec.Config) ([]Gain, error)
	// Unfitted predicts without any measurement; nil when the family cannot.
	Unfitted Fitted
}

// Gain is what is known, and may be learnt, of one configuration of a space.
type Gain struct {
	HalfWidth float64 // half the width of the present 90 % interval of ln T
	// Fall is how much the mean HalfWidth of the space is expected to fall when
	// this configuration is measured, once more if it has been already.
	Fall float64
}

// Param is one fitted parameter.
type Param struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Card says what a Fitted was fitted on and how far to trust it. Errors are
// fractions of the measured step time.
type Card struct {
	spec.Key
	Family   string  `json:"family"`
	NFit     int     `json:"n_fit"`      // rows fitted
	NHeldOut int     `json:"n_held_out"` // rows predicted, not fitted, not in doubt
	NLeftOut int     `json:"n_left_out"` // rows in doubt or without a step time
	MAPE     float64 `json:"mape"`       // mean absolute relative error over the held-out rows
	P95APE   float64 `json:"p95_ape"`    // 95th percentile of it, nearest rank
	MAPEAll  float64 `json:"mape_all"`   // MAPE with the rows in doubt counted as well
	NAll     int     `json:"n_all"`      // rows MAPEAll is the mean of
	Coverage float64 `json:"coverage"`   // share of the held-out rows inside their 90 % interval
	// MAPEUnfitted is the mean error over the same held-out rows of the model
	// that needs no fit, with which FitKey was told to compare; 0 when it was
	// told none or that model covers none of the rows.
	MAPEUnfitted float64          `json:"mape_unfitted,omitempty"`
	Params       map[string]Param `json:"params"`
	DataHash     string           `json:"data_hash"` // of the rows fitted, in order
	Created      time.Time        `json:"created,omitzero"`
	Warnings     []string         `json:"warnings"`
}

// BeatsUnfitted reports whether the model predicted its held-out rows better
// than one that needs no fit, or there was none to compare with.
func (c Card) BeatsUnfitted() bool {
	return c.NHeldOut > 0 && (c.MAPEUnfitted == 0 || c.MAPE < c.MAPEUnfitted)
}
