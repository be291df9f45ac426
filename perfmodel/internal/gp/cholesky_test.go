package gp

import (
	"math"
	"testing"
)

func TestCholesky(t *testing.T) {
	// L = [2 0 0; 1 3 0; -1 2 1], A = L·Lᵀ, computed by hand.
	a := [][]float64{{4, 2, -2}, {2, 10, 5}, {-2, 5, 6}}
	c, ok := NewCholesky(3, func(i, j int) float64 { return a[i][j] })
	if !ok {
		t.Fatal("not positive definite")
	}
	want := []float64{1, -2, 3}
	b := make([]float64, 3)
	for i := range a {
		b[i] = Dot(a[i], want)
	}
	c.Solve(b)
	for i := range b {
		if math.Abs(b[i]-want[i]) > 1e-12 {
			t.Errorf("x = %v, want %v", b, want)
		}
	}
}

// TestCholeskyUndoes checks product, determinant (2·3·1)² and inverse for the same matrix.
func TestCholeskyUndoes(t *testing.T) {
	a := [][]float64{{4, 2, -2}, {2, 10, 5}, {-2, 5, 6}}
	c, _ := NewCholesky(3, func(i, j int) float64 { return a[i][j] })
	if got := c.logDet(); math.Abs(got-math.Log(36)) > 1e-12 {
		t.Errorf("ln |A| = %g, want ln 36", got)
	}
	for i, d := range c.InverseDiagonal() {
		unit := make([]float64, 3)
		unit[i] = 1
		c.Solve(unit)
		if math.Abs(unit[i]-d) > 1e-12 {
			t.Errorf("[A⁻¹]%d%d = %g, want %g", i, i, d, unit[i])
		}
		c.Multiply(unit)
		for j, v := range unit {
			want := 0.0
			if i == j {
				want = 1
			}
			if math.Abs(v-want) > 1e-12 {
				t.Errorf("A·A⁻¹ at %d, %d = %g, want %g", j, i, v, want)
			}
		}
	}
}

func TestCholeskyRefuses(t *testing.T) {
	for _, d := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, ok := NewCholesky(1, func(int, int) float64 { return d }); ok {
			t.Errorf("accepted %g", d)
		}
	}
}
