package planner_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// A plan that fits has no fixes and some headroom; what does not is mended by
// every change that is named, and by no more than 64 times the devices.
func TestFitCheck(t *testing.T) {
	pl := planner.New(analytic(t), planner.Options{})
	gpt13b, gpt65b := testModel(40, 5120, 40), testModel(80, 8192, 64)
	for _, c := range []struct {
		name    string
		model   spec.Model
		memGiB  float64
		devices int
		batch   int
		plan    string // "" = any
		fits    bool
		change  string // one of the fixes
	}{
		{"fits", gpt13b, 80, 8, 8, "dp=8,zero=3,recompute=full", true, ""},
		{"micro-batch too large", gpt13b, 80, 8, 512, "dp=8,mb=64,ga=1,zero=3", false, "recompute=full"},
		{"states too large", gpt13b, 80, 16, 16, "dp=16,recompute=full", false, "zero=3"},
		{"any plan", gpt13b, 80, 8, 8, "", true, ""},
		{"more devices", gpt65b, 8, 1, 64, "", false, "devices"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(c.devices, c.batch)
			r.Model, r.Accelerator = c.model, testAccelerator(c.memGiB)
			if c.plan != "" {
				p, err := spec.ParsePlan(c.plan)
				if err != nil {
					t.Fatal(err)
				}
				r.Plan = &p
			}
			got, err := pl.FitCheck(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if got.Fits != c.fits || got.Fits != (got.Headroom() >= 0) || got.Fits != (got.Probability() >= memory.Sure) || got.Fits != (len(got.Fixes) == 0) {
				t.Fatalf("fits %v, headroom %g, probability %g, %d fixes", got.Fits, got.Headroom(), got.Probability(), len(got.Fixes))
			}
			if want := got.Prediction.MemoryBytes; math.Abs(got.Memory.Total()-want) > 1e-6*want {
				t.Errorf("parts add up to %g bytes, predicted are %g", got.Memory.Total(), want)
			}
			found := false
			for _, f := range got.Fixes {
				found = found || strings.Contains(f.Change, c.change)
				if !f.Choice.Fits || f.Choice.Config.Plan.GlobalBatch() != c.batch {
					t.Errorf("%s: plan %s fits %v", f.Change, f.Choice.Config.Plan, f.Choice.Fits)
				}
			}
			if !c.fits && !found {
				t.Errorf("fixes %v, want one that is %q", got.Fixes, c.change)
			}
		})
	}
}

func TestFitCheckOfAnIllegalPlan(t *testing.T) {
	r := request(8, 8)
	r.Plan = &spec.Plan{TP: 7, DP: 1, AccumSteps: 8}
	if _, err := planner.New(analytic(t), planner.Options{}).FitCheck(t.Context(), r); !errors.Is(err, planner.ErrInfeasible) {
		t.Errorf("error %v", err)
	}
}
