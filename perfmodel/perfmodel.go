package perfmodel

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Sentinel errors for callers to branch on. Errors that wrap them name the offending value.
var (
	// ErrTooFewPoints means that the rows do not identify the parameters.
	ErrTooFewPoints = errors.New("too few measurements")
	// ErrNotCovered means that a performance model cannot predict a Config: it has
	// no fitted parameters for the key, or figures it needs are unknown.
	ErrNotCovered = errors.New("not covered by this performance model")
	// ErrNotFinite means that a fit has no finite result: a value in a Config, or a step time, is far too large
	// or too small.
	ErrNotFinite = errors.New("figures too large or too small for a finite fit")
)

// Predictor predicts the throughput and memory of a Config. Implementations are safe for concurrent use and do
// not retain c.
type Predictor interface {
	// Predict returns a finite, positive throughput with its interval. The error wraps ErrNotCovered for a
	// Config that the model cannot predict; other errors come from ctx or from stored data. The caller may
	// append to Warnings but must not change its elements.
	Predict(ctx context.Context, c spec.Config) (spec.Prediction, error)
}

// Preparer is an optional interface of Predictors. It predicts many plans of one model on the same devices
// faster than one call of Predict for each.
type Preparer interface {
	// Prepare fixes everything in c but its plan and its SeqLen. Both errors have the same meaning as those of
	// Predict.
	Prepare(c spec.Config) (Prepared, error)
}

// Prepared predicts the times of plans; MemoryBytes is 0. It is safe for concurrent use.
type Prepared interface {
	// Predict predicts plan p on samples of seq tokens, which is spec.Config.SeqLen.
	Predict(p spec.Plan, seq int) (spec.Prediction, error)
	// Fix fixes the plan too, for samples of many lengths.
	Fix(p spec.Plan) LengthFunc
}

// LengthFunc is Prepared.Predict of one plan.
type LengthFunc func(seq int) (spec.Prediction, error)

// PreparedFunc is a Prepared without anything that plans have in common.
type PreparedFunc func(p spec.Plan, seq int) (spec.Prediction, error)

// Predict implements Prepared.
func (f PreparedFunc) Predict(p spec.Plan, seq int) (spec.Prediction, error) { return f(p, seq) }

// Fix implements Prepared.
func (f PreparedFunc) Fix(p spec.Plan) LengthFunc {
	return func(seq int) (spec.Prediction, error) { return f(p, seq) }
}

// Bounder is an optional interface of Predictors with a cheap lower bound of the step time. A search skips a
// plan if its bound is above the best step time found.
type Bounder interface {
	// StepAtLeast fixes everything in c but its plan and its shape. The bound is nil if none is known. Errors have
	// the same meaning as those of Predict.
	StepAtLeast(c spec.Config) (StepBound, error)
}

// StepBound returns a lower bound of the predicted step time of a normal plan (see spec.Plan.Normal) on a shape, in
// seconds. It changes neither, belongs to the caller of StepAtLeast and is not safe for concurrent use.
type StepBound func(p *spec.Plan, shape *spec.Shape) float64

// Fitted is a Predictor with fitted parameters. Family.Load reads the bytes that MarshalBinary returns; they
// belong to the caller. MarshalBinary fails only if a parameter is not finite.
type Fitted interface {
	Predictor
	encoding.BinaryMarshaler
}

// Doubter is an optional interface of Fitteds that find rows that the others contradict.
type Doubter interface {
	// Outliers returns the rows with a step time far from what the other rows predict, in the order of the fit.
	Outliers() []Outlier
}

// Outlier is a fitted row that the other rows contradict.
type Outlier struct {
	Row    spec.Measurement
	Factor float64 // measured step time over the one that the other rows predict
}

// String describes the contradiction.
func (o Outlier) String() string {
	if o.Factor < 1 {
		return fmt.Sprintf("the other rows predict %.3g times this step time", 1/o.Factor)
	}
	return fmt.Sprintf("%.3g times the step time that the other rows predict", o.Factor)
}

// Family is one kind of performance model: a formula and the way to fit it. All functions are safe for
// concurrent use and do not retain their arguments.
type Family struct {
	Name string
	Doc  string // one line: what the model is and its source

	// Fit estimates the parameters from rows that share one (model, accelerator) key. It ignores rows that are
	// not Usable. The Card's errors are those of rows predicted by a fit that left them out. Errors wrap
	// ErrTooFewPoints if the rows do not identify the parameters and ErrNotFinite if no fit is finite; others
	// come from data, or from ctx within 100 ms of its end. Fit is nil for a family that is not fitted.
	Fit func(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (Fitted, Card, error)
	// Alone means that the family predicts one rank alone (spec.Config.AloneStage) and that Fit, Condition and Gain learn from
	// rows of such. Other families ignore these rows.
	Alone bool
	// Condition fits to rows of any keys at once, and the result, a Pool, predicts keys without rows, too. Rows that are
	// not Usable count with their recorded memory. Nil for a family with a fit per key.
	Condition func(ctx context.Context, rows []spec.Measurement) (Fitted, error)
	// Load restores a Fitted from the bytes of its MarshalBinary. It returns an error for other format versions
	// and for values that no fit produces.
	Load func(b []byte) (Fitted, error)
	// Choose selects n of the candidates to measure or fit on, from their configuration alone. It returns their
	// indices, ascending. Nil if the family has no preference.
	Choose func(candidates []spec.Config, n int) []int
	// Gain returns the expected benefit of measuring each configuration of space, in its order, given the rows
	// of have. wanted are the configurations with intervals that count; nil = those of space. All share one key unless the
	// family has Condition. Rows of have that are not Usable are ignored; have may be empty.
	// Errors are those of Fit, or report several keys. Nil if the family has no estimate.
	Gain func(ctx context.Context, have []spec.Measurement, space, wanted []spec.Config) ([]Gain, error)
	// Unfitted predicts without any measurement; nil if the family cannot.
	Unfitted Fitted
}

// Gain is the present uncertainty of one configuration of a space, and the expected reduction of the whole
// space's uncertainty if that configuration is measured.
type Gain struct {
	HalfWidth float64 // half the width of the present 90 % interval of ln T
	// Fall is the expected decrease of the mean HalfWidth of the space, or of the wanted configurations, when this one is
	// measured, or measured again.
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
	NFit     int     `json:"n_fit" doc:"Rows fitted."`
	NAlone   int     `json:"n_alone,omitempty" doc:"Of the rows fitted, those of one rank alone. They are scored only if all rows are."`
	NPooled  int     `json:"n_pooled,omitempty" doc:"Rows of other models and accelerators that took part in the fit."`
	NHeldOut int     `json:"n_held_out" doc:"Rows scored: predicted, not fitted and not in doubt."`
	NLeftOut int     `json:"n_left_out" doc:"Rows in doubt or without a step time."`
	MAPE     float64 `json:"mape" doc:"Mean absolute relative error over the held-out rows."`
	P95APE   float64 `json:"p95_ape" doc:"95th percentile of the absolute relative error, nearest rank."`
	MAPEAll  float64 `json:"mape_all" doc:"mape over the held-out rows and the rows in doubt."`
	NAll     int     `json:"n_all" doc:"Number of rows in mape_all."`
	Coverage float64 `json:"coverage" doc:"Share of the held-out rows inside their 90 % interval."`
	// MAPEUnfitted is 0 without FitOptions.Unfitted, or if it covers none of the rows.
	MAPEUnfitted float64 `json:"mape_unfitted,omitempty" doc:"Mean absolute relative error of the model without a fit, the analytic one, over the same held-out rows."`
	// MAPEAlone and MAPEAloneUnfitted are mape and mape_unfitted of ranks alone, 0 with a row of a whole step.
	MAPEAlone         float64          `json:"mape_alone,omitempty" doc:"If all rows are of one rank alone: mean absolute relative error over those not fitted."`
	MAPEAloneUnfitted float64          `json:"mape_alone_unfitted,omitempty" doc:"The same of the model without a fit."`
	Params            map[string]Param `json:"params" doc:"Fitted parameters, by name."`
	DataHash          string           `json:"data_hash" doc:"Hash of the fitted rows, in order."`
	Created           time.Time        `json:"created,omitzero"`
	Warnings          []string         `json:"warnings"`
	Drifts            []Drift          `json:"drifts,omitempty" doc:"Changes of the step times since some date, see warnings."`
}

// BeatsUnfitted reports whether the model predicted its held-out rows better than FitOptions.Unfitted did, or
// there was no such model to compare with. If all rows are of ranks alone, these are compared. It is false without
// held-out rows.
func (c Card) BeatsUnfitted() bool {
	if c.MAPEAlone > 0 {
		return c.MAPEAloneUnfitted == 0 || c.MAPEAlone < c.MAPEAloneUnfitted
	}
	return c.NHeldOut > 0 && (c.MAPEUnfitted == 0 || c.MAPE < c.MAPEUnfitted)
}
