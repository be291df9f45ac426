package lp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// Among the optima of a problem, or the points within a hair of them, the best by other costs: what is feasible is a
// sliver, which interior points hardly fit in. That may be beyond the solver, and then it says so, but rarely.
func TestSlivers(t *testing.T) {
	const each = 150
	for _, width := range []float64{0, 1e-9, 1e-8, 1e-7, 1e-6} {
		missed := 0
		for seed := range uint64(each) {
			p := sliver(t, seed, width)
			_, err := p.Solve(context.Background(), Options{})
			if errors.Is(err, ErrNumerical) {
				missed++
			} else if err != nil {
				t.Errorf("width %g, seed %d: %v", width, seed, err)
			}
		}
		t.Logf("width %g: %d of %d missed", width, missed, each)
		if missed > each/50 {
			t.Errorf("width %g: %d of %d missed", width, missed, each)
		}
	}
}

// sliver returns a problem whose feasible points are those of a random one that are within width of its optimum.
func sliver(t *testing.T, seed uint64, width float64) *Problem {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 21))
	var p *Problem
	if seed%3 == 0 {
		p = sparseProblem(seed, 40, 20)
	} else {
		q := randomMaxMin(r, true, 0.5)
		p = q.general()
	}
	s := solve(t, p)
	var terms []Term
	for j, v := range p.vars {
		if v.cost != 0 {
			terms = append(terms, Term{Var(j), v.cost})
		}
		p.vars[j].cost = 0
		if !math.IsInf(v.upper, 1) || p.sense == Minimize {
			p.vars[j].cost = math.Abs(r.NormFloat64())
		}
	}
	slack := width * (1 + math.Abs(s.Objective))
	if p.sense == Maximize {
		p.AtLeast("near the optimum", s.Objective-slack, terms...)
	} else {
		p.AtMost("near the optimum", s.Objective+slack, terms...)
	}
	return p
}
