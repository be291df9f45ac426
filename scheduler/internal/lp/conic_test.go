package lp

import (
	"errors"
	"math"
	"testing"
)

// shares is max-min fairness over identical device types: every division of a job's time is equally good.
func shares(sizes, capacity []float64) (*Problem, [][]Var) {
	p := New(Maximize)
	least := p.Var("least", -Inf, Inf, 1)
	used := make([][]Term, len(capacity))
	x := make([][]Var, len(sizes))
	for i, size := range sizes {
		level, time := []Term{{least, -1}}, []Term{}
		for k := range capacity {
			v := p.Var("", 0, Inf, 0)
			x[i] = append(x[i], v)
			level, time = append(level, Term{v, size}), append(time, Term{v, 1})
			used[k] = append(used[k], Term{v, size})
		}
		p.AtLeast("", 0, level...)
		p.AtMost("", 1, time...)
	}
	for k, terms := range used {
		p.AtMost("", capacity[k], terms...)
	}
	return p, x
}

// Among many optima SolveConic returns that of CVXOPT 1.3.0 (conelp, tolerances 1e-7), to the digits that do not
// depend on CVXOPT's tolerance.
func TestConicEndsWhereCVXOPTDoes(t *testing.T) {
	cases := []struct {
		sizes []float64
		least float64
		x     [][]float64
	}{
		{[]float64{1, 1, 2, 4}, 1, [][]float64{
			{0.177309, 0.333240, 0.489451},
			{0.177309, 0.333240, 0.489451},
			{0.111432, 0.229511, 0.347482},
			{0.058305, 0.138152, 0.225806},
		}},
		{[]float64{1, 1, 1, 1, 1, 1, 2, 2, 4, 4}, 0.6, [][]float64{
			{0.099707, 0.195202, 0.305091},
			{0.099707, 0.195202, 0.305091},
			{0.099707, 0.195202, 0.305091},
			{0.099707, 0.195202, 0.305091},
			{0.099707, 0.195202, 0.305091},
			{0.099707, 0.195202, 0.305091},
			{0.052271, 0.103390, 0.144339},
			{0.052271, 0.103390, 0.144339},
			{0.024084, 0.051903, 0.074012},
			{0.024084, 0.051903, 0.074012},
		}},
	}
	for _, c := range cases {
		p, x := shares(c.sizes, []float64{1, 2, 3})
		s, err := p.SolveConic(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.Objective-c.least) > 1e-6 || s.Residuals.Max() > 1e-6 {
			t.Errorf("the least is %g, want %g; residuals %+v", s.Objective, c.least, s.Residuals)
		}
		for i := range x {
			for k, v := range x[i] {
				if math.Abs(s.Value(v)-c.x[i][k]) > 1e-5 {
					t.Errorf("job %d has %g of its time on type %d, want %g", i, s.Value(v), k, c.x[i][k])
				}
			}
		}
	}
}

// Without an optimum the errors are those of Solve.
func TestConicWithoutOptimum(t *testing.T) {
	p := New(Minimize)
	x := p.Var("x", 0, Inf, 1)
	p.AtMost("low", -1, Term{x, 1})
	if _, err := p.SolveConic(t.Context()); !errors.Is(err, ErrInfeasible) {
		t.Errorf("x >= 0, x <= -1: %v", err)
	}
	q := New(Maximize)
	q.Var("x", 0, Inf, 1)
	if _, err := q.SolveConic(t.Context()); !errors.Is(err, ErrUnbounded) {
		t.Errorf("maximise x >= 0: %v", err)
	}
}

// Fixed variables, ranges and equations are rows like any other.
func TestConicWithRangesAndEquations(t *testing.T) {
	p := New(Minimize)
	x, y, z := p.Var("x", 2, 2, 1), p.Var("y", 0, 5, 1), p.Var("z", -Inf, Inf, 3)
	p.Row("range", 3, 4, Term{x, 1}, Term{y, 1})
	p.Equal("sum", 6, Term{x, 1}, Term{y, 1}, Term{z, 1})
	s, err := p.SolveConic(t.Context()) // z = 4 - y, so y is as great as may be
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[Var]float64{x: 2, y: 2, z: 2} {
		if math.Abs(s.Value(v)-want) > 1e-5 {
			t.Errorf("%s is %g, want %g", p.VarName(v), s.Value(v), want)
		}
	}
}
