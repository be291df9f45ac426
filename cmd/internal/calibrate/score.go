package calibrate

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Scored is a measured plan with its predictions before and after the fit, which did not use it. Part of the
// JSON of pacer calibrate.
type Scored struct {
	Model       string   `json:"model"`
	Accelerator string   `json:"accelerator"`
	Plan        string   `json:"plan"`
	Shape       string   `json:"shape"`
	SeqLen      int      `json:"seq_len"`
	AloneStage  int      `json:"alone_stage,omitempty"` // one rank of this stage without the others; 0 = a whole step
	MeasuredSec float64  `json:"measured_s"`
	Noise       float64  `json:"noise"` // half width of the 95 % interval of the measurement, as a fraction; 0 = unknown
	Before      *StepSec `json:"before"`
	After       *StepSec `json:"after"`

	brief string    // Plan in a table
	at    time.Time // of the measurement
}

// StepSec is a predicted step time.
type StepSec struct {
	Sec   float64 `json:"step_s"`
	Lo    float64 `json:"step_lo_s"` // of the 90 % interval; 0 = none
	Hi    float64 `json:"step_hi_s"`
	Error float64 `json:"error"` // of the prediction, as a fraction of the measured step time
}

// Accuracy sums up predictions of plans that a fit did not see.
type Accuracy struct {
	Plans     int     `json:"plans"`
	Mean      float64 `json:"mape"`
	Median    float64 `json:"median_ape"`
	HalfWidth float64 `json:"half_width"` // mean, of the 90 % intervals of ln step time
	Coverage  float64 `json:"coverage"`   // share of plans inside their interval
}

// score predicts a measured row before and after a fit. A model that does not cover the row gives nil.
func score(ctx context.Context, before, after perfmodel.Predictor, m spec.Measurement) (s Scored, err error) {
	c := m.Config
	s = Scored{Model: c.Model.Name, Accelerator: c.Accelerator.Name, Plan: c.Plan.String(), Shape: c.Shape.String(), SeqLen: c.Seq(), AloneStage: c.AloneStage, MeasuredSec: m.MedianStepSec(), brief: briefPoint(&c), at: m.At}
	s.Noise, _ = campaign.HalfWidth(m)
	if s.Before, err = predict(ctx, before, c, s.MeasuredSec); err == nil {
		s.After, err = predict(ctx, after, c, s.MeasuredSec)
	}
	return s, err
}

func predict(ctx context.Context, p perfmodel.Predictor, c spec.Config, measured float64) (*StepSec, error) {
	if p == nil {
		return nil, nil
	}
	got, err := p.Predict(ctx, c)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sec, lo, hi := got.StepSec(c.Plan.GlobalBatch())
	if got.HalfWidth() == 0 {
		lo, hi = 0, 0
	}
	return &StepSec{sec, lo, hi, sec/measured - 1}, nil
}

// accuracies sums up the rows that have both predictions.
func accuracies(rows []Scored) (before, after Accuracy) {
	var b, a []*StepSec
	var measured []float64
	for _, r := range rows {
		if r.Before != nil && r.After != nil {
			b, a, measured = append(b, r.Before), append(a, r.After), append(measured, r.MeasuredSec)
		}
	}
	return accuracy(b, measured), accuracy(a, measured)
}

func accuracy(predicted []*StepSec, measured []float64) Accuracy {
	if len(predicted) == 0 {
		return Accuracy{}
	}
	out, n := Accuracy{Plans: len(predicted)}, float64(len(predicted))
	var ape []float64
	for i, p := range predicted {
		ape = append(ape, math.Abs(p.Error))
		out.Mean += math.Abs(p.Error) / n
		if p.Lo > 0 {
			out.HalfWidth += math.Log(p.Hi/p.Lo) / 2 / n
		}
		if p.Lo <= measured[i] && measured[i] <= p.Hi {
			out.Coverage += 1 / n
		}
	}
	out.Median = stats.Median(ape)
	return out
}

// fits are performance models by key.
type fits map[spec.Key]perfmodel.Predictor

// of returns the model of a key, or the one without a fit.
func (f fits) of(fam perfmodel.Family, k spec.Key) perfmodel.Predictor {
	if p := f[k]; p != nil {
		return p
	}
	if fam.Unfitted == nil {
		return nil
	}
	return fam.Unfitted
}

// fitKeys fits every key of rows, as pacer fit does. A key without enough rows has no fit.
func fitKeys(ctx context.Context, fam perfmodel.Family, rows []spec.Measurement) (fits, []perfmodel.Outlier, error) {
	out := fits{}
	var outliers []perfmodel.Outlier
	byKey := perfmodel.GroupByKey(usable(rows))
	for k, of := range byKey {
		fitted, _, err := fam.Fit(ctx, perfmodel.Rows(of))
		if errors.Is(err, perfmodel.ErrTooFewPoints) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		out[k] = fitted
		if d, ok := fitted.(perfmodel.Doubter); ok {
			outliers = append(outliers, d.Outliers()...)
		}
	}
	slices.SortFunc(outliers, func(a, b perfmodel.Outlier) int { return perfmodel.CompareConfigs(a.Row.Config, b.Row.Config) })
	return out, outliers, nil
}

// usable returns the rows that can be fitted and scored.
func usable(rows []spec.Measurement) []spec.Measurement {
	return slices.DeleteFunc(slices.Clone(rows), func(m spec.Measurement) bool { return !perfmodel.UsableOrAlone(m) })
}

// scoreHeldOut scores rows that were held out with fits to the chosen ones.
func scoreHeldOut(ctx context.Context, fam perfmodel.Family, heldOut, chosen []spec.Measurement) ([]Scored, []perfmodel.Outlier, error) {
	fitted, outliers, err := fitKeys(ctx, fam, chosen)
	if err != nil {
		return nil, nil, err
	}
	var out []Scored
	for _, m := range perfmodel.MergeRepeats(usable(heldOut)) {
		k := m.Config.Key()
		s, err := score(ctx, fits{}.of(fam, k), fitted.of(fam, k), m)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, s)
	}
	return out, outliers, nil
}

// maxFolds bounds the fits of scoreEach.
const maxFolds = 20

// scoreEach scores every row with a fit to the others, or if there are more than maxFolds, to the rows of the
// other folds.
func scoreEach(ctx context.Context, fam perfmodel.Family, rows []spec.Measurement, seed uint64) ([]Scored, error) {
	rows = perfmodel.MergeRepeats(usable(rows))
	folds := min(len(rows), maxFolds)
	order := stats.Stream(seed, "folds").Perm(len(rows))
	out := make([]Scored, len(rows))
	for f := range folds {
		var in, left []spec.Measurement
		var at []int
		for i, j := range order {
			if i%folds == f {
				left, at = append(left, rows[j]), append(at, j)
			} else {
				in = append(in, rows[j])
			}
		}
		scored, _, err := scoreHeldOut(ctx, fam, left, in)
		if err != nil {
			return nil, err
		}
		slices.Sort(at) // scoreHeldOut returns canonical order, that of rows
		for i, j := range at {
			out[j] = scored[i]
		}
	}
	return out, nil
}
