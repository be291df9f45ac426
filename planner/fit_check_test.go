package planner_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// A plan that fits has headroom and no fixes. A plan that does not fit does so after
// each of its fixes, which need at most 64 times the devices.
func TestFitCheck(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
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
		{"micro-batch of 1", gpt13b, 80, 8, 64, "dp=8,ga=8,zero=3", false, "recompute=full"},
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
			found, seen := false, map[spec.Plan]string{}
			for _, f := range got.Fixes {
				found = found || strings.Contains(f.Change, c.change)
				if other, twice := seen[f.Choice.Config.Plan]; twice {
					t.Errorf("%s and %s are one plan", other, f.Change)
				}
				seen[f.Choice.Config.Plan] = f.Change
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
	if _, err := planner.New(analyticModel(t), planner.Options{}).FitCheck(t.Context(), r); !errors.Is(err, planner.ErrInfeasible) {
		t.Errorf("error %v", err)
	}
	r.Plan, r.SeqLen = &spec.Plan{CP: 8, DP: 1, AccumSteps: 8}, 20
	if _, err := planner.New(analyticModel(t), planner.Options{}).FitCheck(t.Context(), r); !errors.Is(err, planner.ErrInfeasible) || !strings.Contains(err.Error(), "cp=8 does not divide 20 tokens") {
		t.Errorf("error %v", err)
	}
}

// spied is a space that reports the numbers of devices it is searched for.
type spied struct {
	planner.Space
	report func(devices int)
}

func (s spied) Configs(ctx context.Context, r planner.Request) iter.Seq[spec.Config] {
	s.report(r.Devices)
	return s.Space.Configs(ctx, r)
}

// The search for fixes stops when the context ends, and returns the context's error
// and not an empty result.
func TestDiagnosisIsInterrupted(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *planner.Planner, planner.Request) error{
		"Best":  func(c context.Context, pl *planner.Planner, r planner.Request) error { return second(pl.Best(c, r)) },
		"Curve": func(c context.Context, pl *planner.Planner, r planner.Request) error { return second(pl.Curve(c, r)) },
		"FitCheck": func(c context.Context, pl *planner.Planner, r planner.Request) error {
			return second(pl.FitCheck(c, r))
		},
	} {
		for _, at := range []int{16, 32, 64} { // while 2, 4 or 8 times as many devices are tried
			r := request(8, 512)
			r.Model = testModel(96, 12288, 96) // 175 B parameters
			r.Accelerator = testAccelerator(16)
			going, cancel := context.WithCancel(ctx)
			after := 0
			pl := planner.New(analyticModel(t), planner.Options{Space: spied{planner.Enumerate{Offload: []spec.Offload{spec.OffloadNone}}, func(n int) {
				if going.Err() != nil {
					after++
				}
				if n == at {
					cancel()
				}
			}}})
			err := ask(going, pl, r)
			if !errors.Is(err, context.Canceled) || errors.Is(err, planner.ErrInfeasible) {
				t.Errorf("%s interrupted at %d devices: %v", name, at, err)
			}
			if after > 0 {
				t.Errorf("%s interrupted at %d devices searched %d more", name, at, after)
			}
			cancel()
		}
	}
}

// The search for the nearest number of devices with a legal plan stops as well.
func TestDiagnosisOfNoPlanIsInterrupted(t *testing.T) {
	going, cancel := context.WithCancel(ctx)
	defer cancel()
	after := 0
	pl := planner.New(analyticModel(t), planner.Options{Space: spied{planner.NewMeasured(nil), func(n int) {
		if going.Err() != nil {
			after++
		}
		if n == 9 {
			cancel()
		}
	}}})
	if _, err := pl.Best(going, request(8, 32)); !errors.Is(err, context.Canceled) || after > 0 {
		t.Errorf("%v, and %d more numbers of devices were searched", err, after)
	}
}
