package planner_test

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// uncertain predicts more for a higher TP, within ±40 %.
var uncertain = predictor(func(c spec.Config) (spec.Prediction, error) {
	thr := 1 + float64(c.Plan.TP)/10
	return spec.Prediction{Throughput: thr, Lo: thr / 1.4, Hi: thr * 1.4}, nil
})

func beatsBest(t *testing.T, pl *planner.Planner, r planner.Request) (planner.Ranking, []float64) {
	t.Helper()
	rk, err := pl.Rank(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	fitting := rk.Choices[:rk.Fitting]
	p, err := pl.BeatsBest(ctx, r, fitting)
	if err != nil || len(p) != len(fitting) || !math.IsNaN(p[0]) {
		t.Fatalf("%d probabilities for %d choices: %v, %v", len(p), len(fitting), p, err)
	}
	return rk, p
}

// Independent errors: the difference of two normal variables.
func TestBeatsBestIndependent(t *testing.T) {
	rk, p := beatsBest(t, planner.New(uncertain, planner.Options{}), request(4, 16))
	if len(p) <= 64 {
		t.Fatalf("%d choices, want more than one covariance matrix takes", len(p))
	}
	sd := math.Log(1.4*1.4) / (2 * 1.6448536269514722)
	for i, c := range rk.Choices[1:rk.Fitting] {
		lead := math.Log(c.Prediction.Throughput / rk.Choices[0].Prediction.Throughput)
		want := 0.5 * math.Erfc(-lead/(2*sd))
		if got := p[i+1]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: probability %g, want %g", c.Config.Plan, got, want)
		}
	}
}

// Errors that all plans share do not change which plan is better.
func TestBeatsBestCommon(t *testing.T) {
	rk, p := beatsBest(t, planner.New(alike{uncertain}, planner.Options{}), request(4, 16))
	for i, c := range rk.Choices[1:rk.Fitting] {
		want := 0.0
		if c.Prediction.Throughput == rk.Choices[0].Prediction.Throughput {
			want = 0.5
		}
		if p[i+1] != want {
			t.Errorf("%s: probability %g, want %g", c.Config.Plan, p[i+1], want)
		}
	}
}

// A prediction without an interval claims no certainty, and a plan with more
// devices is not compared where fewer devices are better.
func TestBeatsBestUnknown(t *testing.T) {
	exact := predictor(func(c spec.Config) (spec.Prediction, error) {
		return spec.Prediction{Throughput: 1 + float64(c.Plan.TP)}, nil
	})
	_, p := beatsBest(t, planner.New(exact, planner.Options{}), request(4, 16))
	for i, v := range p {
		if !math.IsNaN(v) {
			t.Errorf("choice %d without an interval: probability %g", i, v)
		}
	}
	r := request(4, 16)
	r.Objective, r.TargetThroughput = planner.MinDevices, 1.05
	rk, p := beatsBest(t, planner.New(uncertain, planner.Options{}), r)
	least := rk.Choices[0].Config.Plan.Devices()
	for i, c := range rk.Choices[1:rk.Fitting] {
		if more := c.Config.Plan.Devices() > least; more != math.IsNaN(p[i+1]) {
			t.Errorf("%s: probability %g", c.Config.Plan, p[i+1])
		}
	}
}

// TestTies: plans that beat the best with at least TieProbability count; those without a probability do not.
func TestTies(t *testing.T) {
	if n := planner.Ties([]float64{math.NaN(), 0.5, 0.15, planner.TieProbability, 0.0999, 0, math.NaN()}); n != 3 {
		t.Errorf("%d ties, want 3", n)
	}
}
