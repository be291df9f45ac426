package planner_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Best prunes and Rank does not. Both find the same plan, also where residuals of
// measured rows move the predictions, and in whatever order a space has its plans.
func TestBestIsTheFirstOfRank(t *testing.T) {
	hybrid, err := family.Lookup("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	answered := 0
	for i := range problems(60) {
		r := randomRequest(rng)
		r.Risk = []float64{0, 0.05, 0.5}[rng.IntN(3)]
		switch r.Objective = planner.Objectives()[rng.IntN(4)]; r.Objective {
		case planner.MinDevices:
			r.TargetThroughput = 10 * rng.Float64()
		case planner.Goodput:
			r.NoiseScale, r.MinBatch, r.MaxBatch, r.GlobalBatch = 30, r.GlobalBatch, 3*r.GlobalBatch, 0
		}
		for name, p := range map[string]perfmodel.Predictor{"analytic": analyticModel(t), "hybrid": hybrid.Unfitted, "fitted": fittedTo(t, hybrid, r)} {
			pl := planner.New(p, planner.Options{})
			rk, err := pl.Rank(ctx, r)
			if err != nil && !errors.Is(err, planner.ErrInfeasible) {
				t.Fatalf("%s, problem %d: %v", name, i, err)
			}
			best, err := pl.Best(ctx, r)
			if name == "analytic" {
				back, backErr := planner.New(p, planner.Options{Space: reversed{planner.Enumerate{}}}).Best(ctx, r)
				if back.Config != best.Config || (backErr == nil) != (err == nil) {
					t.Errorf("problem %d: best is %s (%v), in reverse order %s (%v)", i, best.Config.Plan, err, back.Config.Plan, backErr)
				}
			}
			if rk.Fitting == 0 {
				if !errors.Is(err, planner.ErrInfeasible) {
					t.Errorf("%s, problem %d: %s though nothing fits (%v)", name, i, best.Config.Plan, err)
				}
				continue
			}
			answered++
			if err != nil || best.Config != rk.Choices[0].Config {
				t.Errorf("%s, problem %d: best is %s, first of all %s (%v)", name, i, best.Config.Plan, rk.Choices[0].Config.Plan, err)
			}
		}
	}
	if answered < problems(60) {
		t.Errorf("only %d answers", answered)
	}
}

// reversed is a space in reverse order.
type reversed struct{ planner.Space }

func (s reversed) Configs(ctx context.Context, r planner.Request) iter.Seq[spec.Config] {
	all := slices.Collect(s.Space.Configs(ctx, r))
	slices.Reverse(all)
	return slices.Values(all)
}

// fittedTo is the family fitted to one plan of r measured at half the predicted
// speed, which makes a large residual.
func fittedTo(t *testing.T, f perfmodel.Family, r planner.Request) perfmodel.Predictor {
	c := spec.Config{Model: r.Model, Accelerator: r.Accelerator, Plan: spec.Plan{DP: 1, MicroBatch: 2, AccumSteps: 2, Precision: spec.BF16}.Normal(), Shape: spec.NewShape(1)}
	pred, err := f.Unfitted.Predict(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	sec, _, _ := pred.StepSec(c.Plan.GlobalBatch())
	row := spec.Measurement{Config: c, Outcome: spec.OK, Source: "made up", StepSec: []float64{2 * sec}}
	fitted, _, err := f.Fit(ctx, perfmodel.Rows([]spec.Measurement{row}))
	if err != nil {
		t.Fatal(err)
	}
	return fitted
}
