package nnls

import (
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

func TestKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		name string
		a    *mat.Dense
		b    []float64
		want []float64
	}{
		{"identity", mat.NewDense(2, 2, []float64{1, 0, 0, 1}), []float64{2, 3}, []float64{2, 3}},
		{"negative becomes 0", mat.NewDense(2, 2, []float64{1, 0, 0, 1}), []float64{2, -3}, []float64{2, 0}},
		// Unconstrained, the line through (0,3), (1,2), (2,1) is 3 - t. With t's coefficient at 0, the solution
		// is the mean.
		{"line that falls", mat.NewDense(3, 2, []float64{1, 0, 1, 1, 1, 2}), []float64{3, 2, 1}, []float64{2, 0}},
		// The unconstrained solution is (-1, 2): with x0 = 0, x1 = 7/5.
		{"dropping one moves the other", mat.NewDense(2, 2, []float64{1, 1, 1, 2}), []float64{1, 3}, []float64{0, 7.0 / 5}},
		{"nothing helps", mat.NewDense(2, 1, []float64{1, 1}), []float64{-1, -2}, []float64{0}},
		{"empty column", mat.NewDense(2, 2, []float64{0, 1, 0, 1}), []float64{2, 2}, []float64{0, 2}},
		{"twice the same column", mat.NewDense(2, 2, []float64{1, 2, 2, 4}), []float64{3, 6}, []float64{3, 0}},
		{"fewer rows than columns", mat.NewDense(1, 2, []float64{3, 1}), []float64{6}, []float64{2, 0}},
		{"far apart in scale", mat.NewDense(3, 2, []float64{1e9, 1e-9, 2e9, 1e-9, 3e9, 1e-9}), []float64{3, 5, 7}, []float64{2e-9, 1e9}},
	} {
		got, err := Solve(c.a, c.b)
		if err != nil || !floats.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

// TestOptimality: no coefficient is negative; neither raising a zero coefficient nor changing another one
// lowers the error.
func TestOptimality(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "columns")
		num := rapid.Map(rapid.IntRange(-8, 8), func(i int) float64 { return float64(i) / 2 })
		a := mat.NewDense(rows, columns, rapid.SliceOfN(num, rows*columns, rows*columns).Draw(t, "a"))
		b := rapid.SliceOfN(num, rows, rows).Draw(t, "b")
		x, err := Solve(a, b)
		if err != nil {
			t.Fatal(err)
		}
		residual := mat.NewVecDense(rows, nil)
		residual.MulVec(a, mat.NewVecDense(columns, x))
		residual.SubVec(mat.NewVecDense(rows, b), residual)
		for j, v := range x {
			col := mat.NewVecDense(rows, mat.Col(nil, j, a))
			gain, size := mat.Dot(col, residual), mat.Norm(col, 2)*max(floats.Norm(b, 2), 1)
			switch {
			case !(v >= 0) || math.IsInf(v, 0):
				t.Fatalf("x = %v", x)
			case gain > 1e-7*size, v > 0 && gain < -1e-7*size:
				t.Fatalf("x = %v: the error falls by %g with x[%d]", x, gain, j)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	if _, err := Solve(mat.NewDense(2, 1, nil), []float64{1}); err == nil || !strings.Contains(err.Error(), "1 right-hand sides for 2 rows") {
		t.Errorf("lengths: %v", err)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if _, err := Solve(mat.NewDense(1, 1, []float64{1}), []float64{v}); !errors.Is(err, ErrNotFinite) {
			t.Errorf("b = %g: %v", v, err)
		}
		if _, err := Solve(mat.NewDense(1, 1, []float64{v}), []float64{1}); !errors.Is(err, ErrNotFinite) {
			t.Errorf("a = %g: %v", v, err)
		}
	}
}
