package hybrid

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestStepAtLeast: no prediction is below its bound, in any order of plans, and the bound is tight enough to be
// useful.
func TestStepAtLeast(t *testing.T) {
	rows := hostRows()
	fitted, err := Shipped().Condition(context.Background(), rows[:1])
	if err != nil {
		t.Fatal(err)
	}
	moe := rows[0].Config
	moe.Model.Name, moe.Model.Experts, moe.Model.ExpertsPerToken, moe.Model.ExpertFFN = "moe", 8, 2, 4096
	other := rows[0].Config
	other.Model.Name = "other"
	for name, p := range map[string]interface {
		perfmodel.Predictor
		perfmodel.Bounder
	}{"analytic": &analytic.Model{}, "hybrid": Shipped().unfitted(), "fitted hybrid": fitted.(*Model)} {
		for _, c := range []spec.Config{rows[0].Config, moe, other} {
			checkBounds(t, name, p, c)
		}
	}
}

func checkBounds(t *testing.T, name string, p interface {
	perfmodel.Predictor
	perfmodel.Bounder
}, c spec.Config) {
	atLeast, err := p.StepAtLeast(c)
	if err != nil {
		t.Fatal(err)
	}
	if atLeast == nil {
		if _, fitted := p.(*Model); !fitted || name == "hybrid" {
			t.Errorf("%s has no bound for %s", name, c.Model.Name)
		}
		return
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(c.Model.Name))))
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	near := 0
	const plans = 3000
	shapes := []spec.Shape{{}, spec.NewShape(8), spec.NewShape(8, 8), spec.NewShape(4, 4, 4), spec.NewShape(1, 1, 1, 1)}
	for range plans {
		c.Shape = shapes[rng.IntN(len(shapes))]
		c.Plan = spec.Plan{DP: pick(1, 2, 8, 64), TP: pick(1, 2, 8), PP: pick(1, 2, 5, 8), CP: pick(1, 1, 2), EP: pick(1, 1, 2, 8),
			MicroBatch: pick(1, 4), AccumSteps: pick(1, 2, 16), ZeRO: pick(0, 1, 2, 3), SequenceParallel: rng.IntN(2) == 0,
			Recompute: []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull}[rng.IntN(3)],
			Offload:   []spec.Offload{spec.OffloadNone, spec.OffloadOptimizer, spec.OffloadParams}[rng.IntN(3)],
			Schedule:  []spec.Schedule{spec.ScheduleDefault, spec.ScheduleZBH1, spec.ScheduleZBH2, spec.ScheduleZBV}[rng.IntN(4)],
			Precision: []spec.Precision{spec.BF16, spec.FP32, spec.FP8}[rng.IntN(3)]}.Normal()
		got, err := p.Predict(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		sec, _, _ := got.StepSec(c.Plan.GlobalBatch())
		bound := atLeast(&c.Plan, &c.Shape)
		if !(bound > 0) || bound > sec*(1+1e-12) {
			t.Fatalf("%s: %s of %s takes %g s, at least %g", name, c.Plan, c.Model.Name, sec, bound)
		}
		if bound > 0.5*sec {
			near++
		}
	}
	if near < plans/10 {
		t.Errorf("%s of %s: only %d bounds of %d are above half the time", name, c.Model.Name, near, plans)
	}
}
