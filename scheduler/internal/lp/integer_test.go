package lp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// randomInteger returns a problem with up to 7 binaries, and some other variables.
func randomInteger(r *rand.Rand) *Problem {
	p := New(Sense(r.IntN(2)))
	n := 1 + r.IntN(7)
	for range n {
		p.Binary("", float64(r.IntN(21)-10))
	}
	for range r.IntN(3) {
		p.Var("", float64(-r.IntN(3)), float64(r.IntN(4)), float64(r.IntN(11)-5))
	}
	for range 1 + r.IntN(4) {
		var terms []Term
		size := 0.0
		for j := range p.NumVars() {
			if r.IntN(3) > 0 {
				terms = append(terms, Term{Var(j), float64(r.IntN(13) - 4)})
				size += math.Abs(terms[len(terms)-1].Coef)
			}
		}
		switch r.IntN(6) {
		case 0:
			p.AtLeast("", size/float64(3+r.IntN(3)), terms...)
		case 1:
			p.Equal("", float64(r.IntN(5)), terms...)
		default:
			p.AtMost("", size/float64(2+r.IntN(3)), terms...)
		}
	}
	return p
}

// bruteForce solves a linear programme for every combination of the binaries.
func (p *Problem) bruteForce(t *testing.T) (best float64, found bool) {
	t.Helper()
	q := *p
	q.vars = append([]variable(nil), p.vars...)
	binaries := p.binaries()
	best = p.sign() * math.Inf(1)
	for choice := range 1 << len(binaries) {
		for b, j := range binaries {
			v := float64(choice >> b & 1)
			q.SetBounds(Var(j), v, v)
		}
		s, err := q.Solve(context.Background(), Options{})
		if errors.Is(err, ErrInfeasible) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found = true
		best = p.sign() * math.Min(p.sign()*best, p.sign()*s.Objective)
	}
	return best, found
}

func TestSolveIntegerAgreesWithBruteForce(t *testing.T) {
	infeasible := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 10))
		p := randomInteger(r)
		want, found := p.bruteForce(t)
		got, err := p.SolveInteger(context.Background(), IntegerOptions{})
		if !found {
			infeasible++
			if !errors.Is(err, ErrInfeasible) {
				t.Errorf("seed %d: %v, want infeasible", seed, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("seed %d: %v, want %g", seed, err, want)
			continue
		}
		if math.Abs(got.Objective-want) > 1e-6*(1+math.Abs(want)) || got.Gap() > 1e-6 {
			t.Errorf("seed %d: objective %v, bound %v, want %v", seed, got.Objective, got.Bound, want)
		}
		for _, j := range p.binaries() {
			if got.X[j] != 0 && got.X[j] != 1 {
				t.Errorf("seed %d: binary %d is %v", seed, j, got.X[j])
			}
		}
	}
	if infeasible < 20 || infeasible > 200 {
		t.Errorf("%d of 400 are infeasible: too few or too many to mean anything", infeasible)
	}
}

// A budget too small for a proof still returns an answer, and a bound on the other side of the optimum.
func TestSolveIntegerAnytime(t *testing.T) {
	c := randomChoice(rand.New(rand.NewPCG(3, 11)), 30, 3, 5, true)
	want, err := c.Solve(context.Background(), ChoiceOptions{})
	if err != nil || want.Gap() > 1e-9 {
		t.Fatalf("%v, gap %g", err, want.Gap())
	}
	p := c.relaxation()
	for j := range p.vars {
		p.vars[j].binary = true
	}
	for _, nodes := range []int{5, 50, 0} {
		got, err := p.SolveInteger(context.Background(), IntegerOptions{MaxNodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		if got.Objective > want.Value+1e-6 || got.Bound < want.Value-1e-6 {
			t.Errorf("%d nodes: objective %g, bound %g; the optimum is %g", nodes, got.Objective, got.Bound, want.Value)
		}
		if nodes == 0 && got.Gap() > 1e-8 {
			t.Errorf("gap %g at the end", got.Gap())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if _, err := p.SolveInteger(ctx, IntegerOptions{}); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrNoAnswer) {
		t.Errorf("error %v, want that of the context, or no answer", err)
	}
}

// The relaxation is feasible, but no whole point is.
func TestSolveIntegerInfeasible(t *testing.T) {
	p := New(Minimize)
	x, y := p.Binary("x", 1), p.Binary("y", 1)
	p.Equal("half", 1, Term{x, 2}, Term{y, 2})
	_, err := p.SolveInteger(context.Background(), IntegerOptions{})
	var e *InfeasibleError
	if !errors.As(err, &e) || !e.Whole {
		t.Errorf("error %v, want infeasible for whole values", err)
	}
}
