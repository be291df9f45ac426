package hybrid

import (
	"math"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// oneRow fits a row that takes factor times its predicted time, and returns predictions before and after.
func oneRow(t *testing.T, factor float64, env map[string]string) (before, after perfmodel.Predictor, c spec.Config) {
	t.Helper()
	prior := Shipped()
	before = prior.Family().Unfitted
	c = perftest.GPT(spec.Plan{DP: 8, MicroBatch: 2, AccumSteps: 4, Precision: spec.BF16}.Normal())
	c.Framework = "Megatron Core"
	p, err := before.Predict(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	m := perftest.Measured(c, factor*float64(c.Plan.GlobalBatch())/p.Throughput)
	m.Env = env
	after, err = prior.Condition(t.Context(), []spec.Measurement{m})
	if err != nil {
		t.Fatal(err)
	}
	return before, after, c
}

// both returns the predictions of c by two models.
func both(t *testing.T, before, after perfmodel.Predictor, c spec.Config) (was, is spec.Prediction) {
	t.Helper()
	was, err := before.Predict(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if is, err = after.Predict(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return was, is
}

// TestRowInsideWidensNothing: a row inside its interval makes no interval wider, at its site and on other devices; one far
// outside does.
func TestRowInsideWidensNothing(t *testing.T) {
	for factor, inside := range map[float64]bool{1.1: true, 0.95: true, 4: false} {
		before, after, c := oneRow(t, factor, nil)
		most := 0.0
		for _, arch := range []string{c.Accelerator.Arch, "Volta"} {
			for _, plan := range []spec.Plan{{DP: 8, MicroBatch: 1}, {DP: 2, TP: 4, MicroBatch: 4}, {DP: 1, PP: 8, MicroBatch: 1, AccumSteps: 16}, {DP: 512, ZeRO: 3, MicroBatch: 1}} {
				of := c
				of.Accelerator.Arch = arch
				if arch != c.Accelerator.Arch {
					of.Accelerator.Name = "other"
				}
				plan.Precision = spec.BF16
				of.Plan = plan.Normal()
				was, is := both(t, before, after, of)
				most = max(most, is.HalfWidth()/was.HalfWidth())
			}
		}
		if (most < 1.01) != inside {
			t.Errorf("after a row at %g times its predicted time an interval is %.3f times as wide", factor, most)
		}
	}
}

// TestStatedNoise: a row moves predictions less if its source states that runs differ.
func TestStatedNoise(t *testing.T) {
	moved := func(noise string) float64 {
		before, after, c := oneRow(t, 1.3, map[string]string{spec.EnvStepNoise: noise})
		was, is := both(t, before, after, c)
		return math.Log(was.Throughput / is.Throughput)
	}
	none, some, much := moved(""), moved("0.2"), moved("1")
	if !(0.15 < none && some < 0.8*none && much < 0.2*none && much > 0) {
		t.Errorf("a row 0.26 off in log time moves its prediction by %.3f, with noise 0.2 and 1 by %.3f and %.3f", none, some, much)
	}
	for _, wrong := range []string{"NaN", "-1", "Inf", "1e9", "much"} {
		if got := moved(wrong); got != none {
			t.Errorf("noise %q: %g, want %g as without", wrong, got, none)
		}
	}
}
