package lp

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// Every rule applies. One row of two variables is left, and its optimum, with duals, is that of the whole.
func TestPresolveTakesOut(t *testing.T) {
	p := New(Minimize)
	x, y := p.Var("x", 0, Inf, -1), p.Var("y", 0, Inf, -1)
	fixed := p.Var("fixed", 3, 3, 5)
	free := p.Var("in no row", -2, 7, -1)
	p.AtMost("kept", 7, Term{x, 1}, Term{y, 2}, Term{fixed, 1})
	p.AtLeast("the same, tighter", -7, Term{x, -2}, Term{y, -4})
	p.AtMost("singleton", 6, Term{x, 2})
	p.AtMost("singleton once fixed is out", 4, Term{y, 1}, Term{fixed, 1})
	p.AtMost("redundant", 100, Term{x, 1}, Term{y, 1})
	f := p.compile()
	small, rows, cols := newPresolve(f).reduced()
	if len(rows) != 1 || len(cols) != 2 || small.u[0] != 3 || small.u[1] != 1 {
		t.Fatalf("rows %v, columns %v, upper bounds %v are left", rows, cols, small.u)
	}
	s, err := p.Solve(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	// 2x + 4y <= 7 is the tighter; x is worth twice as much there as y, up to 3.
	for v, want := range map[Var]float64{x: 3, y: 0.25, fixed: 3, free: 7} {
		if math.Abs(s.Value(v)-want) > 1e-7 {
			t.Errorf("%s is %v, want %v", p.VarName(v), s.Value(v), want)
		}
	}
	for i, want := range []float64{0, 0.25, -0.25, 0, 0} {
		if math.Abs(s.Duals[i]-want) > 1e-6 {
			t.Errorf("the dual of %s is %v, want %v", p.RowName(Row(i)), s.Duals[i], want)
		}
	}
}

// The reduced optimum restores to an optimum of the whole, so that the whole is solved only if there is none.
func TestPresolveRestores(t *testing.T) {
	restored := 0
	for seed := range uint64(1500) {
		f := random(rand.New(rand.NewPCG(seed, 1)), 8, 8).compile()
		if f.crossed(New(Minimize)) != nil {
			continue
		}
		p := newPresolve(f)
		small, rows, cols := p.reduced()
		out, err := small.path(context.Background(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if out.status != optimal {
			continue
		}
		x, y := p.restore(out.x, out.y, rows, cols)
		f.clamp(x)
		if r := f.residuals(x, y); r.Max() > 1e-8 {
			whole, err := f.path(context.Background(), Options{})
			if err == nil && whole.status == optimal {
				t.Errorf("seed %d: residuals %v", seed, r)
			}
			continue
		}
		if len(rows) < f.a.Rows {
			restored++
		}
	}
	if restored < 300 {
		t.Errorf("only %d of 1500 were made smaller and solved", restored)
	}
}
