package family

import (
	"math"
	"testing"
)

func TestCholesky(t *testing.T) {
	// L = [2 0 0; 1 3 0; -1 2 1], A = L·Lᵀ, worked by hand.
	a := [][]float64{{4, 2, -2}, {2, 10, 5}, {-2, 5, 6}}
	c, ok := newCholesky(3, func(i, j int) float64 { return a[i][j] })
	if !ok {
		t.Fatal("not positive definite")
	}
	want := []float64{1, -2, 3}
	b := make([]float64, 3)
	for i := range a {
		b[i] = dot(a[i], want)
	}
	c.solve(b)
	for i := range b {
		if math.Abs(b[i]-want[i]) > 1e-12 {
			t.Errorf("x = %v, want %v", b, want)
		}
	}
}

func TestCholeskyRefuses(t *testing.T) {
	for _, d := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, ok := newCholesky(1, func(int, int) float64 { return d }); ok {
			t.Errorf("accepted %g", d)
		}
	}
}
