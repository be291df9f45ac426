package hybrid

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// drawTimes returns step times of configurations of one site, drawn from the prior: constants, what they leave, and the noise of a
// run.
func drawTimes(t *testing.T, prior *Prior, configs []spec.Config, rng *rand.Rand, share float64) []spec.Measurement {
	t.Helper()
	rows := make([]spec.Measurement, len(configs))
	for i, c := range configs {
		rows[i] = spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{1}, Source: "test"}
	}
	fit := &analytic.Calibration{}
	for i := range configs {
		if !fit.Try(&configs[i]) {
			t.Fatalf("%s is not covered", configs[i].Plan)
		}
	}
	fit.Arrange()
	dist := prior.consts.DistributionOf(&fit.Layout)
	x := gaussian(t, dist.Cov, rng)
	for i := range x {
		x[i] += dist.Mean[i]
	}
	log := make([]float64, len(rows))
	if err := fit.Predict(t.Context(), x, log); err != nil {
		t.Fatal(err)
	}
	at, kernel := pointsOf(fit.Rows), &prior.kernels.Mean
	cov := mat.NewSymDense(len(at), nil)
	for i := range at {
		for j := range i + 1 {
			cov.SetSym(i, j, kernel.Covariance(&at[i], &at[j]))
		}
		cov.SetSym(i, i, kernel.Variance(&at[i])+kernel.Noise*kernel.Noise)
	}
	left := gaussian(t, cov, rng)
	for i := range rows {
		rows[i].StepSec = []float64{math.Exp(log[i] + share*left[i])}
	}
	return rows
}

// gaussian draws from the normal distribution of mean 0 and covariance cov.
func gaussian(t *testing.T, cov mat.Symmetric, rng *rand.Rand) []float64 {
	t.Helper()
	n := cov.SymmetricDim()
	var eigen mat.EigenSym
	if !eigen.Factorize(cov, true) {
		t.Fatal("no eigenvalues")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	out := make([]float64, n)
	for k, v := range eigen.Values(nil) {
		z := rng.NormFloat64() * math.Sqrt(max(v, 0))
		for i := range out {
			out[i] += z * vectors.At(i, k)
		}
	}
	return out
}

// TestWholePlansFromAlone: rows of ranks alone lower the error of whole plans of the same site and narrow their intervals,
// and nine in ten plans stay inside, also where the ranks are predicted without any error: the network may be as slow as
// before.
func TestWholePlansFromAlone(t *testing.T) {
	prior := Shipped()
	var alone, whole []spec.Config
	for _, tp := range []int{1, 2, 4, 8} {
		for _, pp := range []int{1, 2, 4} {
			for _, mb := range []int{1, 2, 4} {
				c := perftest.GPT(spec.Plan{DP: 64 / tp / pp, TP: tp, PP: pp, MicroBatch: mb, AccumSteps: 8, ZeRO: 1, Precision: spec.BF16}.Normal())
				c.Framework = spec.FrameworkWorker
				whole = append(whole, c)
				for c.AloneStage = 1; c.AloneStage <= pp; c.AloneStage += max(pp-1, 1) { // first and last
					alone = append(alone, c)
				}
				c.Plan.AccumSteps, c.AloneStage = 1, 0 // more of its time is traffic
				whole = append(whole, c)
			}
		}
	}
	for share, half := range map[float64]float64{0: 0.36, 1: 0.42} { // of what the constants leave; largest half width after
		for _, n := range []int{4, 24} {
			var before, after drawnScore
			for seed := range uint64(20) {
				rng := stats.Stream(seed, "whole plans")
				var configs []spec.Config
				for _, i := range rng.Perm(len(alone))[:n] {
					configs = append(configs, alone[i])
				}
				rows := drawTimes(t, prior, append(configs, whole...), rng, share)
				fitted, err := prior.Condition(t.Context(), rows[:n])
				if err != nil {
					t.Fatal(err)
				}
				before.add(t, prior.Family().Unfitted, rows[n:])
				after.add(t, fitted, rows[n:])
			}
			text := fmt.Sprintf("share %g, %d ranks: before %s, after %s", share, n, before, after)
			t.Log(text)
			if after.error > 0.9*before.error || after.half > min(half*after.plans, before.half) || after.inside < 0.9*after.plans {
				t.Error(text)
			}
		}
	}
}

// drawnScore sums up predictions of drawn step times.
type drawnScore struct{ plans, error, half, inside float64 }

func (s *drawnScore) add(t *testing.T, p perfmodel.Predictor, rows []spec.Measurement) {
	t.Helper()
	for _, m := range rows {
		got, err := p.Predict(t.Context(), m.Config)
		if err != nil {
			t.Fatal(err)
		}
		sec, _, _ := got.StepSec(m.Config.Plan.GlobalBatch())
		off := math.Abs(math.Log(sec / m.MedianStepSec()))
		s.plans, s.error, s.half = s.plans+1, s.error+off, s.half+got.HalfWidth()
		if off <= got.HalfWidth() {
			s.inside++
		}
	}
}

func (s drawnScore) String() string {
	return fmt.Sprintf("error %.3f, half width %.3f, %.3f inside", s.error/s.plans, s.half/s.plans, s.inside/s.plans)
}
