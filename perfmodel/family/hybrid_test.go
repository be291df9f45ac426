package family

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// hybridRows are steps of one job type that run at the speed the prior
// predicts, times factor, with some noise.
func hybridRows(t testing.TB, n int, factor, noise float64) []spec.Measurement {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 8))
	var out []spec.Measurement
	for _, dp := range []int{1, 2, 4, 8, 16} {
		for _, tp := range []int{1, 2, 4, 8} {
			for _, pp := range []int{1, 2, 4} {
				for _, mb := range []int{1, 2} {
					c := analyticConfig(spec.Plan{DP: dp, TP: tp, PP: pp, MicroBatch: mb, AccumSteps: 8, ZeRO: 1, Precision: spec.BF16})
					c.Framework = "Megatron-LM"
					p, err := Shipped().Predict(context.Background(), c)
					if err != nil {
						t.Fatal(err)
					}
					sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
					out = append(out, spec.Measurement{Config: c, Outcome: spec.OK, Source: "made", StepSec: []float64{sec * factor * math.Exp(noise*rng.NormFloat64())}})
				}
			}
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:n]
}

func BenchmarkHybridFit(b *testing.B) {
	rows := hybridRows(b, 100, 1.2, 0.03)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Shipped().Family().Fit(context.Background(), perfmodel.Rows(rows)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestShippedPriorIsTrained(t *testing.T) {
	if _, err := ReadPrior(priorJSON); err != nil {
		t.Fatal(err, "; go run ./bench/prior DIR > perfmodel/family/prior.json")
	}
	if n := Shipped().trained.Rows; n < 500 {
		t.Errorf("trained on %d rows", n)
	}
}
