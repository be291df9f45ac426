package planner

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The closed form agrees with the integral over Z.
func TestKnowledgeGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + rng.IntN(6)
		mean, shift := make([]float64, n), make([]float64, n)
		for i := range mean {
			mean[i], shift[i] = rng.NormFloat64(), rng.NormFloat64()
			if rng.IntN(4) == 0 {
				shift[i] = 0.5 // parallel lines
			}
		}
		want := -maxOf(mean, shift, 0)
		const step = 1e-3
		for z := -8.0; z < 8; z += step {
			want += maxOf(mean, shift, z+step/2) * density(z+step/2) * step
		}
		if got := knowledgeGradient(mean, shift); math.Abs(got-want) > 1e-5 {
			t.Fatalf("means %v, shifts %v: %g, integrated %g", mean, shift, got, want)
		}
	}
}

func maxOf(mean, shift []float64, z float64) float64 {
	top := math.Inf(-1)
	for i := range mean {
		top = max(top, mean[i]+shift[i]*z)
	}
	return top
}

// A measurement that moves all means alike has no gain.
func TestKnowledgeGradientOfWhatIsCommon(t *testing.T) {
	if got := knowledgeGradient([]float64{1, 2, 3}, []float64{0.4, 0.4, 0.4}); got != 0 {
		t.Errorf("%g, want 0", got)
	}
}
