package analytic

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// slopeRows returns rows of several stacks, devices, formats and kinds of model, each with several plans.
func slopeRows(t *testing.T) *Calibration {
	t.Helper()
	var rows []spec.Measurement
	add := func(c spec.Config) {
		rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{10_000}})
	}
	for _, stack := range []string{"Megatron-LM", "DeepSpeed", "FSDP", "PyTorch DDP"} {
		for i, p := range []spec.Plan{
			{DP: 8, MicroBatch: 1, AccumSteps: 4, Precision: spec.BF16},
			{DP: 16, MicroBatch: 2, ZeRO: 3, Precision: spec.BF16, Recompute: spec.RecomputeFull},
			{DP: 4, TP: 4, PP: 2, VirtualStages: 2, MicroBatch: 1, AccumSteps: 8, ZeRO: 1, Precision: spec.FP8, Recompute: spec.RecomputeSelective},
			{DP: 2, TP: 8, CP: 2, MicroBatch: 1, Precision: spec.BF16},
			{DP: 8, MicroBatch: 64, Precision: spec.FP32, Offload: spec.OffloadOptimizer, ZeRO: 2},
		} {
			c := perftest.GPT(p)
			c.Framework = stack
			if i%2 == 1 {
				c.Model.Experts, c.Model.ExpertsPerToken, c.Model.ExpertFFN = 16, 2, 2048
				c.Plan.EP = 2
			}
			add(c)
			c.Accelerator.Name, c.Accelerator.Arch, c.Accelerator.FP8 = "H", "Hopper", 2*c.Accelerator.BF16
			add(c)
		}
	}
	c, err := NewCalibration(context.Background(), rows)
	if err != nil || len(c.Rows) != len(rows) {
		t.Fatalf("%d of %d rows, %v", len(c.Rows), len(rows), err)
	}
	c.Add(c.Rows)
	c.gather()
	return c
}

// TestSlopes compares the derivatives with differences of predictions by every single parameter, at the start
// of the fit and at other points, where groups that changed no row before may become active.
func TestSlopes(t *testing.T) {
	c := slopeRows(t)
	n := c.Size()
	rng := rand.New(rand.NewPCG(5, 6))
	x, at, up, down := make([]float64, n), make([]float64, len(c.Y)), make([]float64, len(c.Y)), make([]float64, len(c.Y))
	changed, before := 0, make([]bool, len(c.Y)*n)
	for round := range 6 {
		for k := range x {
			x[k] = float64(round) * 0.6 * rng.NormFloat64()
		}
		_ = c.Predict(t.Context(), x, at)
		jac := mat.NewDense(len(c.Y), n, nil)
		_ = c.Differentiate(t.Context(), x, jac)
		for k := range x {
			was := x[k]
			x[k] = was + bayes.Step
			_ = c.Predict(t.Context(), x, up)
			x[k] = was - bayes.Step
			_ = c.Predict(t.Context(), x, down)
			x[k] = was
			for i := range at {
				if round > 0 && (up[i] != at[i]) != before[i*n+k] {
					changed++
				}
				before[i*n+k] = up[i] != at[i]
				want := (up[i] - down[i]) / (2 * bayes.Step)
				kink := math.Abs(up[i]-2*at[i]+down[i]) / bayes.Step
				if got := jac.At(i, k); math.Abs(got-want) > 1e-4+kink {
					t.Fatalf("round %d: %s on %s, plan %s, parameter %d: slope %g, want %g", round, c.Rows[i].Config.Framework,
						c.Rows[i].Config.Accelerator.Name, c.plan[i], k, got, want)
				}
			}
		}
	}
	if changed == 0 {
		t.Error("no row ever depended on another parameter than at first: the test shows little")
	}
}

func TestLogRatio(t *testing.T) {
	for _, r := range []float64{0, 1e-12, 1e-6, -1e-5, 1e-4} {
		if got, want := logRatio(3*(1+r), 3), math.Log1p(r); math.Abs(got-want) > 1e-15 {
			t.Errorf("ln(1 + %g) = %g, want %g", r, got, want)
		}
	}
}
