package lp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Near certificates are rejected. With one essential multiplier doubled, negated or removed, rows and bounds mostly no
// longer add up to one. The check must accept only what an independent computation accepts.
func TestWrongProofsOfInfeasibilityAreRefused(t *testing.T) {
	refused := 0
	for seed := range uint64(600) {
		p := random(rand.New(rand.NewPCG(seed, 1)), 8, 8)
		_, err := p.Solve(context.Background(), Options{})
		var e *InfeasibleError
		if !errors.As(err, &e) || e.Crossed != "" {
			continue
		}
		f := p.compile()
		if _, ok := f.farkas(slices.Clone(e.Multipliers)); !ok {
			t.Errorf("seed %d: the proof is refused", seed)
		}
		for i, y := range e.Multipliers {
			if math.Abs(y) < 1e-3 {
				continue
			}
			for _, factor := range []float64{0, -1, 2} {
				wrong := slices.Clone(e.Multipliers)
				wrong[i] *= factor
				holds := p.provesInfeasible(wrong)
				if _, ok := f.farkas(wrong); ok && !holds {
					t.Errorf("seed %d: multiplier %d times %g proves nothing and is accepted", seed, i, factor)
				}
				if !holds {
					refused++
				}
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d wrong proofs", refused)
	}
}

// provesInfeasible checks y independently: the greatest Σ y_i (A x)_i over variables within their bounds is below the
// least that the rows require.
func (p *Problem) provesInfeasible(y []float64) bool {
	coef := make([]float64, len(p.vars))
	asked := 0.0
	for i, v := range y {
		switch {
		case v > 0:
			asked += v * p.rows[i].lower
		case v < 0:
			asked += v * p.rows[i].upper
		}
		for _, t := range p.rowTerms(i) {
			coef[t.Var] += v * t.Coef
		}
	}
	most := 0.0
	for j, c := range coef {
		switch {
		case math.Abs(c) < 1e-8: // rounding
		case c > 0:
			most += c * p.vars[j].upper
		default:
			most += c * p.vars[j].lower
		}
	}
	return most < asked-1e-6
}

// A direction that leaves a bound or does not improve the objective is no ray.
func TestWrongRaysAreRefused(t *testing.T) {
	p := New(Minimize)
	x, y := p.Var("x", 0, Inf, -1), p.Var("y", -Inf, 5, 1)
	z := p.Var("z", 0, 1, 0)
	p.AtMost("r", 3, Term{x, 1}, Term{y, 2}, Term{z, 1})
	f := p.compile()
	for _, c := range []struct {
		ray []float64
		ok  bool
	}{
		{[]float64{1, -1, 0}, true},    // x grows, y falls twice as much as the row asks for
		{[]float64{1, -0.5, 0}, true},  // just as much
		{[]float64{1, -0.4, 0}, false}, // too little: the row is left
		{[]float64{1, 0, 0}, false},    // not at all
		{[]float64{-1, 1, 0}, false},   // the wrong way
		{[]float64{0, 0, 0}, false},
		{[]float64{0, 0, 1}, false}, // z is bounded and costs nothing
	} {
		if _, ok := f.recession(slices.Clone(c.ray)); ok != c.ok {
			t.Errorf("ray %v: accepted %v, want %v", c.ray, ok, c.ok)
		}
	}
}

// Units of rows and variables, scaled by up to a million, change neither the optimum nor its existence.
func TestBadlyScaledOfAllKinds(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(1000) {
		p := random(rand.New(rand.NewPCG(seed, 23)), 8, 8)
		want, wantErr := p.Solve(context.Background(), Options{})
		got, err := spoil(p, seed).Solve(context.Background(), Options{})
		switch {
		case wantErr == nil && err == nil:
			counts["optimal"]++
			if a, b := want.Objective, got.Objective; math.Abs(a-b) > 1e-6*(1+math.Abs(a)) {
				t.Errorf("seed %d: %v, in other units %v", seed, a, b)
			}
		case errors.Is(wantErr, ErrInfeasible) && errors.Is(err, ErrInfeasible):
			counts["infeasible"]++
		case errors.Is(wantErr, ErrUnbounded) && errors.Is(err, ErrUnbounded):
			counts["unbounded"]++
		default:
			t.Errorf("seed %d: %v, in other units %v", seed, wantErr, err)
		}
	}
	for _, kind := range []string{"optimal", "infeasible", "unbounded"} {
		if counts[kind] < 50 {
			t.Errorf("only %d %s", counts[kind], kind)
		}
	}
}
