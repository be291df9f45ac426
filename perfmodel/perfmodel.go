package perfmodel

import (
	"context"
	"encoding"
	"errors"
	"iter"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Sentinels for callers to branch on. Errors that wrap them name the value.
var (
	// ErrTooFewPoints means that the rows do not identify the parameters.
	ErrTooFewPoints = errors.New("too few measurements")
	// ErrNotCovered means that a performance model cannot predict a Config: it has
	// no fitted parameters for the key, or figures it needs are unknown.
	ErrNotCovered = errors.New("not covered by this performance model")
	// ErrNotFinite means that a fit has no finite result: a figure of a Config or
	// a step time is out of all proportion.
	ErrNotFinite = errors.New("figures too large or too small for a finite fit")
)

// Predictor predicts the throughput and memory of a Config. Implementations are
// safe for concurrent use and keep nothing of c.
type Predictor interface {
	// Predict returns a finite, positive throughput with its interval. The error
	// wraps ErrNotCovered for a Config the model cannot predict; others are ctx's
	// or of stored data. The caller may append to Warnings but not change them.
	Predict(ctx context.Context, c spec.Config) (spec.Prediction, error)
}

// Preparer is an optional interface of Predictors that answer many plans of
// one model on the same machines faster than one Config at a time.
type Preparer interface {
	// Prepare fixes everything in c but its plan. The returned function predicts
	// time alone (MemoryBytes is 0), is safe for concurrent use, and belongs to the
	// caller. Both errors are as those of Predict.
	Prepare(c spec.Config) (func(p spec.Plan) (spec.Prediction, error), error)
}

// Bounder is an optional interface of Predictors with a cheap lower bound of the
// step time. A search skips a plan whose bound is above the best it has.
type Bounder interface {
	// StepAtLeast fixes everything in c but its plan. The returned function gives a
	// lower bound, in seconds, of the predicted step of a normal plan (see
	// spec.Plan.Normal), which it does not change. It belongs to the caller and is
	// not safe for concurrent use. It is nil where no bound is known. Errors are as
	// those of Predict.
	StepAtLeast(c spec.Config) (func(p *spec.Plan) float64, error)
}

// Fitted is a Predictor with parameters. Family.Load reads what MarshalBinary
// writes; the bytes belong to the caller. MarshalBinary fails only on parameters
// that are not finite.
type Fitted interface {
	Predictor
	encoding.BinaryMarshaler
}

// Family is one kind of performance model: a formula and how to fit it. All
// functions are safe for concurrent use and keep nothing of their arguments.
type Family struct {
	Name string
	Doc  string // one line: what it is and its source

	// Fit estimates the parameters for the one (model, accelerator) key that
	// all of data must share. It leaves out rows that are not Usable. The Card's
	// error figures are those of rows predicted without them. Errors wrap
	// ErrTooFewPoints where the rows do not identify the parameters and
	// ErrNotFinite where no fit is finite; others are those of data, or ctx's
	// within 100 ms. Nil where the family is not fitted.
	Fit func(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (Fitted, Card, error)
	// Load restores a Fitted from what its MarshalBinary wrote. It refuses other
	// versions, and figures that no fit gives.
	Load func(b []byte) (Fitted, error)
	// Choose picks which n of the candidates to measure or fit on, from their
	// configuration alone. It returns their indices, ascending. Nil where the
	// family has no preference.
	Choose func(candidates []spec.Config, n int) []int
	// Gain returns the expected gain of measuring each configuration of space, in
	// its order, given the rows measured so far. All of space and have share one
	// key. Rows of have that are not Usable count for nothing; have may be empty.
	// Errors are those of Fit, or of several keys. Nil where the family has no
	// estimate.
	Gain func(ctx context.Context, have []spec.Measurement, space []spec.Config) ([]Gain, error)
	// Unfitted predicts without any measurement; nil where the family cannot.
	Unfitted Fitted
}

// Gain is the present uncertainty of one configuration of a space, and how much
// a measurement of it would lower that of all.
type Gain struct {
	HalfWidth float64 // half the width of the present 90 % interval of ln T
	// Fall is the expected fall of the mean HalfWidth of the space when this
	// configuration is measured, or measured again.
	Fall float64
}

// Param is one fitted parameter.
type Param struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Card describes a fit: the rows it used and its errors on others. Errors are
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
	// MAPEUnfitted is the mean error of FitOptions.Unfitted over the same held-out
	// rows; 0 without such a model, or if it covers none of the rows.
	MAPEUnfitted float64          `json:"mape_unfitted,omitempty"`
	Params       map[string]Param `json:"params"`
	DataHash     string           `json:"data_hash"` // of the rows fitted, in order
	Created      time.Time        `json:"created,omitzero"`
	Warnings     []string         `json:"warnings"`
}

// BeatsUnfitted reports whether the model predicted its held-out rows better
// than FitOptions.Unfitted, or had none to compare with.
func (c Card) BeatsUnfitted() bool {
	return c.NHeldOut > 0 && (c.MAPEUnfitted == 0 || c.MAPE < c.MAPEUnfitted)
}
