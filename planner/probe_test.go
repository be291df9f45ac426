package planner_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Probes are plans that may be best, not plans with exact predictions or slow ones.
func TestProbes(t *testing.T) {
	of := map[int]spec.Prediction{ // by tp
		1: {Throughput: 10, Lo: 9.99, Hi: 10.01},
		2: {Throughput: 9.8, Lo: 8, Hi: 12},
		4: {Throughput: 3, Lo: 2.5, Hi: 3.6},
	}
	p := predictor(func(c spec.Config) (spec.Prediction, error) {
		out, simple := of[c.Plan.TP], c.Plan.PP == 1 && c.Plan.ZeRO == 0 && c.Plan.MicroBatch == 1 && !c.Plan.SequenceParallel
		if !simple || c.Plan.Recompute != spec.RecomputeNone || c.Plan.Offload != spec.OffloadNone {
			return spec.Prediction{Throughput: 0.1, Lo: 0.09, Hi: 0.11}, nil
		}
		return out, nil
	})
	pl := planner.New(p, planner.Options{})
	probes, err := pl.Probes(ctx, request(4, 16), 5)
	if err != nil || len(probes) == 0 || probes[0].Choice.Config.Plan.TP != 2 {
		t.Fatalf("%d probes, %v", len(probes), err)
	}
	// One normal error against an exact rival: σ·(φ(z) + zΦ(z)), reduced by noise.
	sd := math.Log(12.0/8) / (2 * 1.6448536269514722)
	s := sd * sd / math.Hypot(sd, 0.04)
	z := math.Log(9.8/10) / s
	want := s * (math.Exp(-z*z/2)/math.Sqrt(2*math.Pi) + z*0.5*math.Erfc(-z/math.Sqrt2))
	if math.Abs(probes[0].Gain-want) > 1e-3*want {
		t.Errorf("gain %g, want %g", probes[0].Gain, want)
	}
	for i, p := range probes[1:] {
		if p.Gain <= probes[i].Gain || p.Choice.Config.Plan.TP == 4 {
			t.Errorf("probe %d: %s gains %g after %g", i+1, p.Choice.Config.Plan, p.Gain, probes[i].Gain)
		}
	}
	if _, err := pl.Probes(ctx, request(4, 16), 0); err == nil {
		t.Error("0 probes are taken")
	}
	tight := request(1, 1)
	tight.Accelerator.MemBytes = 1e8
	if _, err := pl.Probes(ctx, tight, 1); !errors.Is(err, planner.ErrInfeasible) {
		t.Errorf("nothing fits: %v", err)
	}
}

// alike has one error, shared by all plans.
type alike struct{ predictor }

func (alike) LogCovariance(_ context.Context, cs []spec.Config) (*mat.SymDense, error) {
	out := mat.NewSymDense(len(cs), nil)
	for i := range cs {
		for j := range cs[:i+1] {
			out.SetSym(i, j, 0.04)
		}
	}
	return out, nil
}

func TestProbesOfCommonErrorsAreWorthless(t *testing.T) {
	p := predictor(func(c spec.Config) (spec.Prediction, error) {
		thr := 1 + float64(c.Plan.TP)
		return spec.Prediction{Throughput: thr, Lo: thr / 1.4, Hi: thr * 1.4}, nil
	})
	if probes, err := planner.New(p, planner.Options{}).Probes(ctx, request(4, 16), 3); err != nil || len(probes) != 3 {
		t.Errorf("independent errors: %d probes, %v", len(probes), err)
	}
	if probes, err := planner.New(alike{p}, planner.Options{}).Probes(ctx, request(4, 16), 3); err != nil || len(probes) != 0 {
		t.Errorf("one common error: %d probes, %v", len(probes), err)
	}
}
