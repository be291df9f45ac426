package accuracy

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// target is a row to predict, and its measurement.
type target struct {
	id     string // where the row is from: file and line, or its own name
	part   string // the source, job type or cell it counts in
	config spec.Config
	want   float64 // what was measured: step time in seconds, or peak memory in bytes
	rows   int     // number of rows with this configuration, 0 = 1
	doubt  string  // the rule that leaves the row out of the score, "" = it counts
}

// prediction is a target and its predicted value, or the reason that there is none.
type prediction struct {
	target
	got, lo, hi float64 // what was predicted and its 90 % interval; lo = hi = 0 without one
	err         error
}

// predictAll predicts every target by p. Its only error is that of a cancelled context.
func predictAll(ctx context.Context, p perfmodel.Predictor, qs []target) ([]prediction, error) {
	out := make([]prediction, len(qs))
	for i, q := range qs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = predict(ctx, p, q)
	}
	return out, nil
}

func predict(ctx context.Context, p perfmodel.Predictor, q target) prediction {
	a := prediction{target: q}
	pred, err := p.Predict(ctx, q.config)
	if err != nil {
		a.err = err
		return a
	}
	a.got, a.lo, a.hi = pred.StepSec(q.config.Plan.GlobalBatch())
	if pred.Lo <= 0 || pred.Hi <= 0 {
		a.lo, a.hi = 0, 0
	}
	if !(a.got > 0) || math.IsInf(a.got, 0) {
		a.err = fmt.Errorf("accuracy: the predicted step of %g s is not positive and finite", a.got)
	}
	return a
}

// refuseAll returns the error err for every target.
func refuseAll(qs []target, err error) []prediction {
	out := make([]prediction, len(qs))
	for i, q := range qs {
		out[i] = prediction{target: q, err: err}
	}
	return out
}

// ape returns |predicted/measured - 1|.
func (a *prediction) ape() float64 { return math.Abs(a.got/a.want - 1) }

// rateError returns the error of the samples per second, as ape does of the time.
func (a *prediction) rateError() float64 { return math.Abs(a.want/a.got - 1) }

// Summary has the errors of a set of predictions, as fractions of the measured
// values; without rows they are 0.
type Summary struct {
	Rows    int     `json:"rows"`    // predicted and scored
	Refused int     `json:"refused"` // not predicted
	Mean    float64 `json:"mean"`
	Median  float64 `json:"median"`
	P95     float64 `json:"p95"` // nearest rank
	Max     float64 `json:"max"`
	// Intervals counts the rows with a 90 % interval; Coverage is the share of
	// them with the measured time inside, HalfWidth the median half-width of
	// ln T.
	Intervals int     `json:"intervals"`
	Coverage  float64 `json:"coverage"`
	HalfWidth float64 `json:"half_width"`
}

// summarize scores predictions by the error of the step time.
func summarize(predictions []prediction) Summary { return summarizeBy(predictions, (*prediction).ape) }

// summarizeBy scores predictions by a measure of error.
func summarizeBy(predictions []prediction, measure func(*prediction) float64) Summary {
	var s Summary
	var errs, half []float64
	inside := 0
	for i := range predictions {
		a := &predictions[i]
		if a.err != nil {
			s.Refused++
			continue
		}
		errs = append(errs, measure(a))
		if a.lo > 0 {
			half = append(half, math.Log(a.hi/a.lo)/2)
			if a.lo <= a.want && a.want <= a.hi {
				inside++
			}
		}
	}
	s.Rows, s.Intervals = len(errs), len(half)
	s.Mean, s.P95 = perfmodel.ErrorSummary(errs)
	s.Median = stats.Median(errs)
	if len(errs) > 0 {
		s.Max = slices.Max(errs)
	}
	if s.Intervals > 0 {
		s.Coverage = float64(inside) / float64(s.Intervals)
		s.HalfWidth = stats.Median(half)
	}
	return s
}

// mean returns the mean, 0 of none.
func mean(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return stat.Mean(v, nil)
}

// Part is the Summary of one source, job type or cell.
type Part struct {
	Name string `json:"name"`
	Summary
}

// byPart summarizes each part, in order of first appearance.
func byPart(predictions []prediction, measure func(*prediction) float64) []Part {
	var names []string
	parts := map[string][]prediction{}
	for _, a := range predictions {
		if _, ok := parts[a.part]; !ok {
			names = append(names, a.part)
		}
		parts[a.part] = append(parts[a.part], a)
	}
	out := make([]Part, len(names))
	for i, name := range names {
		out[i] = Part{name, summarizeBy(parts[name], measure)}
	}
	return out
}

// sourceFigures returns mean and largest error of every source.
func sourceFigures(parts []Part) (out []Figure) {
	for _, p := range parts {
		if p.Rows > 0 {
			out = append(out, Figure{Name: p.Name + ", mean", Value: p.Mean, Unit: "1"}, Figure{Name: p.Name + ", largest", Value: p.Max, Unit: "1"})
		}
	}
	return out
}

// over returns one figure of every part that has rows.
func over(parts []Part, figure func(Summary) float64) []float64 {
	var out []float64
	for _, p := range parts {
		if p.Rows > 0 {
			out = append(out, figure(p.Summary))
		}
	}
	return out
}

// Refusal says why a row was not predicted.
type Refusal struct {
	Row string `json:"row"`
	Why string `json:"why"`
}

// rowName names a row of a part; an id may contain the part already.
func rowName(part, id string) string {
	if strings.HasPrefix(id, part) {
		return id
	}
	return part + ": " + id
}

func refusals(predictions []prediction) []Refusal {
	var out []Refusal
	for _, a := range predictions {
		if a.err != nil {
			out = append(out, Refusal{rowName(a.part, a.id), a.err.Error()})
		}
	}
	return out
}

// counted returns the predictions that no rule leaves out.
func counted(predictions []prediction) []prediction {
	var out []prediction
	for _, a := range predictions {
		if a.doubt == "" {
			out = append(out, a)
		}
	}
	return out
}
