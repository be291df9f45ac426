package report

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestStudentT uses t(4, 0.975) = 2.776445 and t(4, 0.95) = 2.131847 of any table;
// the standard deviation of 1..5 is sqrt(2.5).
func TestStudentT(t *testing.T) {
	for confidence, quantile := range map[float64]float64{0.95: 2.776445, 0.9: 2.131847} {
		i := StudentT([]float64{5, 1, math.NaN(), 3, 2, 4}, confidence)
		want := quantile * math.Sqrt(2.5) / math.Sqrt(5)
		if i.Mean != 3 || math.Abs(float64(i.HalfWidth())-want) > 1e-5 || math.Abs(float64(i.Hi)-3-want) > 1e-5 {
			t.Errorf("at %g: %+v, want 3 ± %g", confidence, i, want)
		}
	}
	if i := StudentT([]float64{7}, 0.95); i.Mean != 7 || i.Lo.Defined() || i.Hi.Defined() || i.HalfWidth().Defined() {
		t.Errorf("one value: %+v", i)
	}
	if i := StudentT([]float64{math.NaN()}, 0.95); i.Mean.Defined() {
		t.Errorf("no value: %+v", i)
	}
}

func TestRatioT(t *testing.T) {
	a := []float64{1, 2, 3, 4}
	if i := RatioT(a, []float64{1.5, 3, 4.5, 6}, 0.95); i.Mean != 1.5 || i.Lo != 1.5 || i.Hi != 1.5 {
		t.Errorf("proportional: %+v, want exactly 1.5", i)
	}
	if i := RatioT([]float64{0, 0}, a[:2], 0.95); i.Mean.Defined() {
		t.Errorf("over nothing: %+v", i)
	}
	// By hand: ratio 11/10, residuals .9 -.2 -.3 -.4, s = 0.605530, mean(a) 2.5,
	// t(3, 0.975) = 3.182446.
	i := RatioT(a, []float64{2, 2, 3, 4}, 0.95)
	if half := 3.182446 * 0.605530 / (2.5 * 2); math.Abs(float64(i.Mean)-1.1) > 1e-12 || math.Abs(float64(i.HalfWidth())-half) > 1e-5 {
		t.Errorf("%+v, want 1.1 ± %g", i, half)
	}
}

// TestGeometricT has values e^-1, e^0 and e^1: the logarithms have mean 0 and standard
// deviation 1, and t(2, 0.975) = 4.302653.
func TestGeometricT(t *testing.T) {
	i := GeometricT([]float64{1 / math.E, 1, 0, math.E}, 0.95)
	if hi := math.Exp(4.302653 / math.Sqrt(3)); math.Abs(float64(i.Mean)-1) > 1e-12 || math.Abs(float64(i.Hi)/hi-1) > 1e-5 || math.Abs(float64(i.Lo)*hi-1) > 1e-5 {
		t.Errorf("%+v, want 1, 1/%g, %g", i, hi, hi)
	}
	if i := GeometricT([]float64{-1}, 0.95); i.Mean.Defined() {
		t.Errorf("no value: %+v", i)
	}
}

// TestStudentTCovers checks how many intervals of normal values contain the
// expectation.
func TestStudentTCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 4000
	held := 0
	for range rounds {
		x := make([]float64, 5)
		for i := range x {
			x[i] = 10 + 3*r.NormFloat64()
		}
		if i := StudentT(x, 0.9); i.Lo <= 10 && 10 <= i.Hi {
			held++
		}
	}
	if share := float64(held) / rounds; math.Abs(share-0.9) > 0.02 {
		t.Errorf("%g of the 90 %% intervals hold the expectation", share)
	}
}
