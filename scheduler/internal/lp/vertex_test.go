package lp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	gonum "gonum.org/v1/gonum/optimize/convex/lp"
)

// Optimise other costs over the optima of a problem, or the points near them. The feasible set is too thin for
// interior points, but has vertices.
func TestSlivers(t *testing.T) {
	vertices := 0
	for _, width := range []float64{0, 1e-9, 1e-8, 1e-7, 1e-6} {
		for seed := range uint64(150) {
			p := sliver(t, seed, width)
			s, err := p.Solve(context.Background(), Options{})
			if err != nil {
				t.Errorf("width %g, seed %d: %v", width, seed, err)
				continue
			}
			if s.Vertex {
				vertices++
			}
		}
	}
	t.Logf("%d of 750 are vertices", vertices)
	if vertices == 0 {
		t.Error("every problem was solved from inside: the test says nothing about vertices")
	}
}

// Crossover from an arbitrary point finds the optimum of another simplex method, or a certificate that there is none.
func TestCrossoverFromAnyPoint(t *testing.T) {
	ended := map[status]int{}
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := random(r, 8, 8)
		want, wantErr := simplex(p)
		f := p.compile()
		in := newInterior(newStandard(f))
		x, y := in.scaled()
		for j := range x {
			x[j] *= 3 * r.Float64()
		}
		out := outcome{residuals: Residuals{Primal: math.Inf(1)}, sx: x, sy: y}
		if err := f.crossover(context.Background(), in, &out); err != nil {
			t.Fatal(err)
		}
		if out.status == stalled && out.residuals.Max() <= 1e-8 {
			out.status = optimal
		}
		ended[out.status]++
		switch {
		case wantErr == nil && out.status == optimal:
			value := 0.0
			for j, v := range p.vars {
				value += v.cost * out.x[j]
			}
			if math.Abs(value-want) > 1e-7*(1+math.Abs(want)) {
				t.Errorf("seed %d: %v, want %v", seed, value, want)
			}
		case wantErr == nil && out.status == unbounded, errors.Is(wantErr, gonum.ErrInfeasible) != (out.status == infeasible),
			out.status == stalled, errors.Is(wantErr, gonum.ErrUnbounded) != (out.status == unbounded):
			if wantErr == nil || errors.Is(wantErr, gonum.ErrInfeasible) || errors.Is(wantErr, gonum.ErrUnbounded) {
				t.Errorf("seed %d: status %d, residuals %v; simplex says %v", seed, out.status, out.residuals, wantErr)
			}
		}
	}
	t.Log(ended)
}

// sliver returns a problem with the feasible points of a random one that are within width of its optimum.
func sliver(t *testing.T, seed uint64, width float64) *Problem {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 21))
	var p *Problem
	if seed%3 == 0 {
		p = sparseProblem(seed, 40, 20)
	} else {
		p = randomMaxMin(r, 0.5).general()
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
