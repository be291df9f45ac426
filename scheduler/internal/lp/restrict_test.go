package lp

import (
	"errors"
	"math"
	"testing"
)

// maximise 3x + 2y, x + y <= 4, x <= 2: x = y = 2 with duals 2 and 1.
func TestCertify(t *testing.T) {
	p := New(Maximize)
	x, y := p.Var("x", 0, Inf, 3), p.Var("y", 0, Inf, 2)
	p.AtMost("both", 4, Term{x, 1}, Term{y, 1})
	p.AtMost("one", 2, Term{x, 1})
	s, err := p.Certify([]float64{2, 2}, []float64{2, 1}, Options{})
	if err != nil || s.Objective != 10 || s.Residuals.Max() > 1e-15 || s.Dual(0) != 2 {
		t.Errorf("%+v, %v, want the optimum 10", s, err)
	}
	for _, c := range [][2][]float64{
		{{2, 2}, {2, 0.9}}, // x is worth more than it costs
		{{1, 3}, {2, 1}},   // the second row is not used up
		{{2, 2.1}, {2, 1}}, // too much
		{{2, 2}, {math.NaN(), 1}},
	} {
		if s, err := p.Certify(c[0], c[1], Options{}); !errors.Is(err, ErrNumerical) {
			t.Errorf("%v with duals %v: %+v, %v, want ErrNumerical", c[0], c[1], s, err)
		}
	}
	if _, err := p.Certify([]float64{2}, []float64{2, 1}, Options{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("one value for two variables: %v, want ErrInvalid", err)
	}
	if _, err := p.Certify([]float64{2, 2}, []float64{2, 1}, Options{Tolerance: -1}); err == nil {
		t.Error("a tolerance below 0 is accepted")
	}
}

// Without y the best is 3x = 6, at which y is worth 2 more than it costs.
func TestSolveOnly(t *testing.T) {
	p := New(Maximize)
	x, y := p.Var("x", 0, Inf, 3), p.Var("y", 0, Inf, 2)
	p.AtMost("both", 4, Term{x, 1}, Term{y, 1})
	p.AtMost("one", 2, Term{x, 1})
	s, err := p.SolveOnly(t.Context(), []bool{true, false}, Options{})
	if err != nil || math.Abs(s.Objective-6) > 1e-7 || s.Value(y) != 0 || math.Abs(s.Reduced[y]-2) > 1e-7 || math.Abs(s.Value(x)-2) > 1e-7 {
		t.Errorf("%+v, %v, want x = 2, y = 0 with a reduced cost of 2", s, err)
	}
	if s, err = p.SolveOnly(t.Context(), []bool{true, true}, Options{}); err != nil || math.Abs(s.Objective-10) > 1e-7 {
		t.Errorf("with all: %+v, %v, want 10", s, err)
	}
	if _, err := p.SolveOnly(t.Context(), []bool{true}, Options{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("one of two: %v, want ErrInvalid", err)
	}
	p.AtMost("none", 1, Term{7, 1})
	if _, err := p.SolveOnly(t.Context(), []bool{true, false}, Options{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a variable that is not there: %v, want ErrInvalid", err)
	}
}
