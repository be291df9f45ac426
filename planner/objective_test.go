package planner_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

type objectiveScore struct {
	objective planner.Objective
	score     func(planner.Choice) float64
}

// objectiveScores are the objectives by their definitions, with a noise scale of 20 and a least batch of 8.
var objectiveScores = []objectiveScore{
	{planner.Throughput, func(c planner.Choice) float64 { return c.Prediction.Throughput }},
	{planner.Cost, func(c planner.Choice) float64 { return c.Prediction.Throughput / float64(c.Config.Plan.Devices()) }},
	{planner.Goodput, func(c planner.Choice) float64 {
		return c.Prediction.Throughput * (20 + 8) / (20 + float64(c.Config.Plan.GlobalBatch()))
	}},
}

// For every objective, Best and the first of Rank equal a search over every number of
// devices and batch.
func TestObjectivesEqualBruteForce(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	base := request(12, 0)
	base.MinDevices, base.MinBatch, base.MaxBatch = 1, 8, 48
	batches := []int{8, 12, 16, 24, 32, 48}
	atLeast20 := func(c planner.Choice) float64 {
		if c.Prediction.Throughput < 20 {
			return math.Inf(-1)
		}
		return -float64(c.Config.Plan.Devices()) + c.Prediction.Throughput/1e6
	}
	for _, c := range append(slices.Clone(objectiveScores), objectiveScore{planner.MinDevices, atLeast20}) {
		want := math.Inf(-1)
		for n := 1; n <= 12; n++ {
			for _, b := range batches {
				at := base
				at.Devices, at.MinDevices, at.GlobalBatch = n, 0, b
				rk, err := pl.Rank(ctx, at)
				if err != nil {
					continue
				}
				for _, ch := range rk.Choices {
					if ch.Fits {
						want = max(want, c.score(ch))
					}
				}
			}
		}
		r := base
		r.Objective, r.TargetThroughput, r.NoiseScale = c.objective, 20, 20
		best, err := pl.Best(ctx, r)
		if err != nil || !near(c.score(best), want) {
			t.Errorf("%s: best %s on %s is worth %g, want %g (%v)", c.objective, best.Config.Plan, best.Config.Shape.Devices, c.score(best), want, err)
		}
		r.Top = 3
		rk, err := pl.Rank(ctx, r)
		if err != nil || len(rk.Choices) != 3 || rk.Choices[0].Config != best.Config {
			t.Errorf("%s: ranked %d choices, %v", c.objective, len(rk.Choices), err)
		}
		r.Top = 0
		all, err := pl.Rank(ctx, r)
		if err != nil || !slices.EqualFunc(all.Choices[:3], rk.Choices, func(a, b planner.Choice) bool { return a.Config == b.Config }) {
			t.Errorf("%s: the first three of all are not the three asked for (%v)", c.objective, err)
		}
	}
}

// Known answers of Pollux's equation 7: 1 at the initial batch, initial/batch without noise, 1 with endless
// noise.
func TestStatisticalEfficiency(t *testing.T) {
	for _, c := range []struct {
		batch, initial int
		noise, want    float64
	}{{32, 32, 256, 1}, {64, 32, 0, 0.5}, {64, 32, 32, 2.0 / 3}, {1 << 20, 32, 1e12, 1}, {16, 32, 1, 1}} {
		if e := planner.StatisticalEfficiency(c.batch, c.initial, c.noise); math.Abs(e-c.want) > 1e-5 {
			t.Errorf("%+v: %g", c, e)
		}
	}
}

func TestCostOfAChoice(t *testing.T) {
	r := request(8, 64)
	r.PricePerHour = 2
	c, err := planner.New(analyticModel(t), planner.Options{}).Best(ctx, r)
	if want := 8 * 2 / 3600.0 / c.Prediction.Throughput; err != nil || !near(c.CostPerSample, want) || c.Efficiency != 1 {
		t.Errorf("%g a sample, want %g; efficiency %g (%v)", c.CostPerSample, want, c.Efficiency, err)
	}
}

// At a risk, a slightly faster plan with a much wider interval loses.
func TestRisk(t *testing.T) {
	wild := predictor(func(c spec.Config) (spec.Prediction, error) {
		if c.Plan.TP == 2 {
			return spec.Prediction{Throughput: 11, Lo: 5, Hi: 24}, nil
		}
		return spec.Prediction{Throughput: 10, Lo: 9.5, Hi: 10.5}, nil
	})
	pl := planner.New(wild, planner.Options{})
	r := request(2, 8)
	for risk, tp := range map[float64]int{0: 2, 0.5: 2, 0.05: 1} {
		r.Risk = risk
		if c, err := pl.Best(ctx, r); err != nil || c.Config.Plan.TP != tp {
			t.Errorf("risk %g: %s, want tp=%d (%v)", risk, c.Config.Plan, tp, err)
		}
	}
}

func TestTargetMissed(t *testing.T) {
	r := request(4, 64)
	r.Objective, r.TargetThroughput = planner.MinDevices, 1e6
	_, err := planner.New(analyticModel(t), planner.Options{}).Best(ctx, r)
	var why *planner.InfeasibleError
	if !errors.As(err, &why) || !errors.Is(err, planner.ErrInfeasible) || why.Nearest == nil || !strings.Contains(err.Error(), "samples/s of the 1e+06 asked for") {
		t.Errorf("%v", err)
	}
}

// A throughput equal to the target reaches it.
func TestTargetReachedExactly(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	r := request(4, 64)
	fastest, err := pl.Best(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	r.Objective, r.TargetThroughput = planner.MinDevices, fastest.Prediction.Throughput
	got, err := pl.Best(ctx, r)
	if err != nil || got.Config.Plan.Devices() != 4 || got.Prediction.Throughput != fastest.Prediction.Throughput {
		t.Errorf("%s at %g samples/s, want %s at %g (%v)", got.Config.Plan, got.Prediction.Throughput,
			fastest.Config.Plan, fastest.Prediction.Throughput, err)
	}
	r.TargetThroughput = math.Nextafter(r.TargetThroughput, math.Inf(1))
	if _, err := pl.Best(ctx, r); !errors.Is(err, planner.ErrInfeasible) {
		t.Errorf("a target that is just missed: %v", err)
	}
}

func TestObjectivesRefuse(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	for want, change := range map[string]func(*planner.Request){
		`objective "speed" is not one of`:   func(r *planner.Request) { r.Objective = "speed" },
		"needs a target throughput":         func(r *planner.Request) { r.Objective = planner.MinDevices },
		"needs the gradient noise scale":    func(r *planner.Request) { r.Objective = planner.Goodput },
		"at least 9 of at most 8":           func(r *planner.Request) { r.MinDevices = 9 },
		"risk 0.7":                          func(r *planner.Request) { r.Risk = 0.7 },
		"risk NaN":                          func(r *planner.Request) { r.Risk = math.NaN() },
		"price of -1":                       func(r *planner.Request) { r.PricePerHour = -1 },
		"global batch 0 and bounds 0..0":    func(r *planner.Request) { r.GlobalBatch = 0 },
		"global batch 0 and bounds 16..8":   func(r *planner.Request) { r.GlobalBatch, r.MinBatch, r.MaxBatch = 0, 16, 8 },
		"initial batch -3":                  func(r *planner.Request) { r.InitialBatch = -3 },
		"target of +Inf samples/s, a price": func(r *planner.Request) { r.TargetThroughput = math.Inf(1) },
	} {
		r := request(8, 64)
		change(&r)
		if _, err := pl.Best(ctx, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
