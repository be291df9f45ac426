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

// Probabilities are of the objective's score at the median, whatever the risk that ranks.
func TestBeatsBestByObjective(t *testing.T) {
	sd := math.Log(1.4*1.4) / (2 * 1.6448536269514722)
	for _, c := range objectiveScores {
		r := request(4, 0)
		r.Objective, r.Risk = c.objective, 0.1
		r.MinDevices, r.MinBatch, r.MaxBatch, r.NoiseScale = 1, 8, 32, 20
		rk, p := beatsBest(t, planner.New(uncertain, planner.Options{}), r)
		differ := 0
		for i, choice := range rk.Choices[1:rk.Fitting] {
			lead := math.Log(c.score(choice) / c.score(rk.Choices[0]))
			if want := 0.5 * math.Erfc(-lead/(2*sd)); math.Abs(p[i+1]-want) > 1e-9 {
				t.Errorf("%s: %s: probability %g, want %g", c.objective, choice.Config.Plan, p[i+1], want)
			}
			if lead != math.Log(choice.Prediction.Throughput/rk.Choices[0].Prediction.Throughput) {
				differ++
			}
		}
		if (differ > 0) != (c.objective != planner.Throughput) {
			t.Errorf("%s: %d of %d plans have another lead than by throughput", c.objective, differ, rk.Fitting)
		}
	}
}

// At a risk, the first plan may have a lower median than another. With errors that both share the other is
// better for certain.
func TestBeatsBestAtRisk(t *testing.T) {
	wild := predictor(func(c spec.Config) (spec.Prediction, error) {
		if c.Plan.TP == 2 {
			return spec.Prediction{Throughput: 11, Lo: 5, Hi: 24}, nil
		}
		return spec.Prediction{Throughput: 10, Lo: 9.5, Hi: 10.5}, nil
	})
	r := request(2, 8)
	r.Risk = 0.05
	rk, p := beatsBest(t, planner.New(alike{wild}, planner.Options{}), r)
	certain := 0
	for i, c := range rk.Choices[1:rk.Fitting] {
		want := 0.5
		if c.Config.Plan.TP == 2 {
			want = 1
			certain++
		}
		if p[i+1] != want {
			t.Errorf("%s: probability %g, want %g", c.Config.Plan, p[i+1], want)
		}
	}
	if certain == 0 {
		t.Error("no plan with a higher median")
	}
}
