package campaign

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/profiler"
)

// predictionsVersion is the version of the file of Predictions.
const predictionsVersion = 1

// Predictions are the predictions of a campaign, recorded before it is measured.
type Predictions struct {
	Version  int              `json:"version"`
	Campaign string           `json:"campaign"`
	Label    string           `json:"label"`
	Created  time.Time        `json:"created"`
	Family   string           `json:"family"`
	Rows     int              `json:"rows"` // usable rows that the predictions were fitted to
	Machine  SetupJSON        `json:"machine"`
	Points   []PointPredicted `json:"points"`
}

// PointPredicted is the prediction of one point. Without a prediction, Why says so and StepSec is 0.
type PointPredicted struct {
	Model       string  `json:"model"`
	Accelerator string  `json:"accelerator"`
	Plan        string  `json:"plan"`
	Shape       string  `json:"shape"`
	SeqLen      int     `json:"seq_len"`
	AloneStage  int     `json:"alone_stage,omitempty"` // see spec.Config
	StepSec     float64 `json:"step_s"`
	LoSec       float64 `json:"lo_s"` // 90 % interval; both 0 = none
	HiSec       float64 `json:"hi_s"`
	MemBytes    float64 `json:"mem_bytes"`                 // peak of a device, 0 = not predicted
	Allocated   float64 `json:"allocated_bytes,omitempty"` // of that, bytes of tensors
	Why         string  `json:"why,omitempty"`
}

// Predict predicts the open points of the session, made at the time now.
func (s *Session) Predict(ctx context.Context, now time.Time) (Predictions, error) {
	points, rows, err := profiler.Predict(ctx, s.Campaign, s.Profiler)
	p := Predictions{Version: predictionsVersion, Campaign: s.Campaign.Name, Label: cmp.Or(s.Profiler.Label, "1"), Created: now.UTC(),
		Family: cmp.Or(s.Campaign.Family, family.Default), Rows: rows, Machine: s.JSON(), Points: []PointPredicted{}}
	for _, x := range points {
		p.Points = append(p.Points, predictedPoint(x))
	}
	return p, err
}

func predictedPoint(x profiler.Predicted) PointPredicted {
	p := nameOfPoint(x.Config)
	if x.Err != nil {
		p.Why = x.Err.Error()
		return p
	}
	p.MemBytes, p.Allocated = x.Prediction.MemoryBytes, x.Allocated
	sec, lo, hi := x.Prediction.StepSec(x.Config.Plan.GlobalBatch())
	if p.StepSec = sec; lo < hi {
		p.LoSec, p.HiSec = lo, hi
	}
	return p
}

// nameOfPoint returns the fields that name c.
func nameOfPoint(c spec.Config) PointPredicted {
	return PointPredicted{Model: c.Model.Name, Accelerator: c.Accelerator.Name, Plan: c.Plan.Normal().String(), Shape: c.Shape.String(), SeqLen: c.Seq(), AloneStage: c.AloneStage}
}

// Write writes the file at path, whole or not at all.
func (p *Predictions) Write(path string) error {
	return atomicfile.Write(path, 0o666, func(w io.Writer) error { return console.WriteJSON(w, p) })
}

// maxPredictions bounds a file of predictions, in bytes.
const maxPredictions = 256 << 20

// ReadPredictions reads a file of Write.
func ReadPredictions(path string) (p Predictions, err error) {
	text, err := query.ReadFile("predictions", path, maxPredictions)
	if err != nil {
		return p, fmt.Errorf("profile: %w", err)
	}
	bad := func(format string, args ...any) error {
		return fail.Usagef("profile: %s is no file of profile plan --predict: "+format, append([]any{path}, args...)...)
	}
	switch err := json.Unmarshal(text, &p); {
	case err != nil:
		return p, bad("%w", err)
	case p.Version != predictionsVersion:
		return p, bad("version %d, want %d", p.Version, predictionsVersion)
	case p.Campaign == "" || p.Created.IsZero():
		return p, bad("campaign %q, created %s, want both", p.Campaign, p.Created)
	}
	for i, x := range p.Points {
		for _, v := range []float64{x.StepSec, x.LoSec, x.HiSec, x.MemBytes, x.Allocated} {
			if v < 0 || math.IsInf(v, 0) {
				return p, bad("points[%d] has the value %g, want finite ones, 0 or more", i, v)
			}
		}
	}
	return p, nil
}

// Scored is a measured point with its prediction.
type Scored struct {
	PointPredicted
	MeasuredSec float64   `json:"measured_s"` // median
	Error       float64   `json:"error"`      // predicted / measured - 1
	Within      bool      `json:"within"`     // measured is in the 90 % interval
	PeakBytes   float64   `json:"peak_bytes"` // measured, 0 = unknown
	MemError    float64   `json:"mem_error"`  // predicted / measured - 1, of tensors where these were measured, 0 = unknown
	At          time.Time `json:"at"`
}

// ModelScore sums up the points of one model.
type ModelScore struct {
	Model       string  `json:"model"`
	Accelerator string  `json:"accelerator"`
	Points      int     `json:"points"`
	MedianError float64 `json:"median_error"` // of |error|
	MeanError   float64 `json:"mean_error"`   // of |error|
	P90Error    float64 `json:"p90_error"`    // of |error|
	Bias        float64 `json:"bias"`         // median of error
	Intervals   int     `json:"intervals"`    // points with an interval
	Within      int     `json:"within"`       // of those, measured within it
	MedianMem   float64 `json:"median_mem_error"`
}

// Score compares predictions with rows measured after them. It returns the points in the order of the predictions, and
// the number of rows of predicted points that are older than the predictions and do not count.
func (p *Predictions) Score(rows []spec.Measurement) (scored []Scored, older int) {
	measured := map[PointPredicted]spec.Measurement{}
	for _, m := range profiler.Latest(rows) {
		if perfmodel.UsableOrAlone(m) {
			measured[nameOfPoint(m.Config)] = m
		}
	}
	for _, x := range p.Points {
		m, ok := measured[PointPredicted{Model: x.Model, Accelerator: x.Accelerator, Plan: x.Plan, Shape: x.Shape, SeqLen: x.SeqLen, AloneStage: x.AloneStage}]
		switch {
		case !ok || x.StepSec == 0:
			continue
		case m.At.Before(p.Created):
			older++
			continue
		}
		s := Scored{PointPredicted: x, MeasuredSec: m.MedianStepSec(), PeakBytes: m.PeakBytes, At: m.At.UTC()}
		s.Error = x.StepSec/s.MeasuredSec - 1
		s.Within = x.LoSec <= s.MeasuredSec && s.MeasuredSec <= x.HiSec
		mem := x.MemBytes
		if memory.KindOf(&m) == stack.Allocated {
			mem = x.Allocated
		}
		if mem > 0 && m.PeakBytes > 0 {
			s.MemError = mem/m.PeakBytes - 1
		}
		scored = append(scored, s)
	}
	return scored, older
}

// ScoreModels sums up scored points by model, and all of them under the name "all" if there are several models.
func ScoreModels(scored []Scored) []ModelScore {
	by := map[spec.Key][]Scored{}
	for _, s := range scored {
		k := spec.Key{Model: s.Model, Accelerator: s.Accelerator}
		by[k] = append(by[k], s)
	}
	var out []ModelScore
	for k, points := range by {
		out = append(out, scoreOf(k, points))
	}
	slices.SortFunc(out, func(a, b ModelScore) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Accelerator, b.Accelerator))
	})
	if len(out) > 1 {
		out = append(out, scoreOf(spec.Key{Model: "all"}, scored))
	}
	return out
}

func scoreOf(k spec.Key, points []Scored) ModelScore {
	s := ModelScore{Model: k.Model, Accelerator: k.Accelerator, Points: len(points)}
	var off, errs, mem []float64
	for _, x := range points {
		off, errs = append(off, math.Abs(x.Error)), append(errs, x.Error)
		s.MeanError += math.Abs(x.Error) / float64(len(points))
		if x.MemError != 0 {
			mem = append(mem, math.Abs(x.MemError))
		}
		if x.HiSec > 0 {
			s.Intervals++
			if x.Within {
				s.Within++
			}
		}
	}
	s.MedianError, s.Bias, s.MedianMem = stats.Median(off), stats.Median(errs), stats.Median(mem)
	slices.Sort(off)
	s.P90Error = stats.NearestRank(off, 0.9)
	return s
}
