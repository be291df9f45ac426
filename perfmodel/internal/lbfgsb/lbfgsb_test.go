package lbfgsb

import (
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/optimize/functions"
	"pgregory.net/rapid"
)

var inf = math.Inf(1)

func rosenbrock(x, grad []float64) float64 {
	var f functions.ExtendedRosenbrock
	f.Grad(grad, x)
	return f.Func(x)
}

// TestKnownMinima: inside the bounds, at a bound, and with a fixed variable.
func TestKnownMinima(t *testing.T) {
	tight := Settings{RelDecrease: 1e-15, Gradient: 1e-9}
	for _, c := range []struct {
		name                string
		start, lower, upper []float64
		want                []float64
		f                   float64
	}{
		{"free", []float64{-1.2, 1}, []float64{-inf, -inf}, []float64{inf, inf}, []float64{1, 1}, 0},
		{"four variables", []float64{-1.2, 1, -1.2, 1}, []float64{-9, -9, -9, -9}, []float64{9, 9, 9, 9}, []float64{1, 1, 1, 1}, 0},
		// With x <= 1/2 the minimum is at x = 1/2, y = x²: (1-x)² = 1/4.
		{"at a bound", []float64{-1.2, 1}, []float64{-inf, -inf}, []float64{0.5, inf}, []float64{0.5, 0.25}, 0.25},
		{"start outside", []float64{7, 1}, []float64{-inf, -inf}, []float64{0.5, inf}, []float64{0.5, 0.25}, 0.25},
		// With y = 4 fixed the cubic 200x³-799x-1... = 0 has its root near 2:
		// 400x(x²-4) + 2(x-1) = 0.
		{"fixed", []float64{1.9, 4}, []float64{0, 4}, []float64{inf, 4}, []float64{1.9993746, 4}, 0.9993748},
	} {
		r, err := Minimize(Objective{Func: rosenbrock, Lower: c.lower, Upper: c.upper}, c.start, tight)
		if err != nil || !r.Converged {
			t.Errorf("%s: %+v, %v", c.name, r, err)
			continue
		}
		for i := range c.want {
			if math.Abs(r.X[i]-c.want[i]) > 1e-5 {
				t.Errorf("%s: x = %v, want %v", c.name, r.X, c.want)
				break
			}
		}
		if math.Abs(r.F-c.f) > 1e-5 {
			t.Errorf("%s: f = %g, want %g", c.name, r.F, c.f)
		}
	}
}

// TestOptimality: the minimum of a convex quadratic in a box meets the Karush-Kuhn-Tucker conditions.
func TestOptimality(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		num := func(lo, hi float64, name string) []float64 {
			return rapid.SliceOfN(rapid.Float64Range(lo, hi), n, n).Draw(t, name)
		}
		center, mix, stiff := num(-3, 3, "center"), num(-1, 1, "mix"), num(0.1, 10, "stiff")
		lower, width := num(-3, 3, "lower"), num(0, 3, "width")
		upper := make([]float64, n)
		for i := range upper {
			upper[i] = lower[i] + width[i]
		}
		quadratic := func(x, grad []float64) float64 { // Σ stiff d²/2 + (mix·d)²/2
			f, along := 0.0, 0.0
			for i := range x {
				along += mix[i] * (x[i] - center[i])
			}
			for i := range x {
				d := x[i] - center[i]
				f += stiff[i] * d * d / 2
				grad[i] = stiff[i]*d + along*mix[i]
			}
			return f + along*along/2
		}
		r, err := Minimize(Objective{Func: quadratic, Lower: lower, Upper: upper}, num(-4, 4, "start"), Settings{RelDecrease: 1e-16, Gradient: 1e-8})
		if err != nil {
			t.Fatal(err)
		}
		grad := make([]float64, n)
		quadratic(r.X, grad)
		for i, g := range grad {
			atLower, atUpper := r.X[i]-lower[i] < 1e-7, upper[i]-r.X[i] < 1e-7
			switch {
			case r.X[i] < lower[i] || r.X[i] > upper[i]:
				t.Fatalf("x[%d] = %g is outside %g..%g", i, r.X[i], lower[i], upper[i])
			case g > 1e-5 && !atLower, g < -1e-5 && !atUpper:
				t.Fatalf("x[%d] = %g within %g..%g has slope %g: %+v", i, r.X[i], lower[i], upper[i], g, r)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	sum := func(x, grad []float64) float64 { grad[0] = 1; return x[0] }
	for _, c := range []struct {
		name         string
		f            func(x, grad []float64) float64
		lower, upper []float64
		want         string
	}{
		{"lengths", sum, nil, []float64{1}, "0 lower and 1 upper"},
		{"crossing", sum, []float64{2}, []float64{1}, "bounds 2 and 1 of variable 0, want lower"},
		{"NaN bound", sum, []float64{math.NaN()}, []float64{1}, "want lower"},
		{"not finite", func(x, grad []float64) float64 { return math.NaN() }, []float64{0}, []float64{1}, ErrNotFinite.Error()},
	} {
		_, err := Minimize(Objective{Func: c.f, Lower: c.lower, Upper: c.upper}, []float64{0}, Settings{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	// Unbounded below: it stops and reports that it did not converge.
	r, err := Minimize(Objective{Func: func(x, grad []float64) float64 { grad[0] = 1; return x[0] }, Lower: []float64{-inf}, Upper: []float64{inf}}, []float64{0}, Settings{MaxSteps: 50})
	if err != nil || errors.Is(err, ErrNotFinite) || r.Converged {
		t.Errorf("unbounded: %+v, %v", r, err)
	}
}
