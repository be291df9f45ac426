package planner_test

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/hybrid"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// fittedToPeaks is the hybrid model fitted to runs of r's job with a quarter more
// memory than the shipped calibration estimates.
func fittedToPeaks(t *testing.T, r planner.Request) perfmodel.Predictor {
	t.Helper()
	var rows []spec.Measurement
	for c := range (planner.Enumerate{}).Configs(ctx, r) {
		b, err := memory.Estimate(c)
		if err != nil {
			t.Fatal(err)
		}
		if 1.25*b.Total() > r.Accelerator.MemBytes {
			continue // no such run can be measured
		}
		pred, err := analyticModel(t).Predict(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		sec, _, _ := pred.StepSec(c.Plan.GlobalBatch())
		rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, Source: "made", StepSec: []float64{sec}, PeakBytes: 1.25 * b.Total()})
		if len(rows) == 12 {
			break
		}
	}
	fitted, err := hybrid.Shipped().Condition(ctx, rows)
	if err != nil {
		t.Fatal(err)
	}
	return fitted
}

// TestMemoryOfAFittedModel: the planner decides by exactly the bytes that the fitted
// model predicts.
func TestMemoryOfAFittedModel(t *testing.T) {
	r := request(8, 16)
	r.Model, r.Accelerator.MemBytes = testModel(24, 4096, 32), 40*memory.GiB
	fitted := fittedToPeaks(t, r)
	pl := planner.New(fitted, planner.Options{})
	rank, err := pl.Rank(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	fit, more := 0, 0
	for _, ch := range rank.Choices {
		pred, err := fitted.Predict(ctx, ch.Config)
		if err != nil {
			t.Fatal(err)
		}
		e, err := pl.Memory(ch.Config)
		if err != nil {
			t.Fatal(err)
		}
		b := e.Plan(ch.Config.Plan)
		if ch.Prediction.MemoryBytes != pred.MemoryBytes || b.Total() != pred.MemoryBytes {
			t.Fatalf("%s: %g bytes in the plan, %g estimated, %g predicted", ch.Config.Plan, ch.Prediction.MemoryBytes, b.Total(), pred.MemoryBytes)
		}
		if ch.Fits != b.Fits(r.Accelerator.MemBytes) {
			t.Fatalf("%s: fits %v, with probability %.3f", ch.Config.Plan, ch.Fits, b.FitProbability(r.Accelerator.MemBytes))
		}
		shipped, err := memory.Estimate(ch.Config)
		if err != nil {
			t.Fatal(err)
		}
		if ch.Fits {
			fit++
		}
		if b.Total() > 1.1*shipped.Total() {
			more++
		}
	}
	if n := len(rank.Choices); fit == 0 || fit == n || more < n*9/10 {
		t.Errorf("of %d plans %d fit and %d need a tenth more than shipped: the test is empty", n, fit, more)
	}
}
