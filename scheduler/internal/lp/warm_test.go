package lp

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// next returns the cluster a moment later, with slightly changed rates and a few devices lost.
func (c cluster) next(change float64) cluster {
	r := rand.New(rand.NewPCG(1, 12))
	after := cluster{gangs: c.gangs}
	for _, rates := range c.rates {
		row := make([]float64, len(rates))
		for k, v := range rates {
			row[k] = v * (1 + change*r.NormFloat64())
		}
		after.rates = append(after.rates, row)
	}
	for _, n := range c.capacity {
		after.capacity = append(after.capacity, math.Floor(n*(1-change)))
	}
	return after
}

// A warm start saves iterations and changes nothing else.
func TestWarmStart(t *testing.T) {
	before := invented(1, 512, 8)
	p, _ := before.maxMin()
	first, err := p.Solve(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, _ = before.next(0.01).maxMin()
	cold, err := p.Solve(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	warm, err := p.Solve(context.Background(), Options{Start: first})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(warm.Objective-cold.Objective) > 1e-8*(1+math.Abs(cold.Objective)) {
		t.Errorf("objective %v from a start, %v without", warm.Objective, cold.Objective)
	}
	if 4*warm.Iterations > 3*cold.Iterations {
		t.Errorf("%d iterations from a start, %d without; want a quarter saved", warm.Iterations, cold.Iterations)
	}
	t.Logf("%d iterations from a start, %d without", warm.Iterations, cold.Iterations)
}

// The answer does not depend on the quality of the start.
func TestWarmStartAnywhere(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := random(r, 8, 8)
		cold, coldErr := p.Solve(context.Background(), Options{})
		s := &Solution{X: make([]float64, p.NumVars()), Duals: make([]float64, p.NumRows())}
		for j := range s.X {
			s.X[j] = 10 * r.NormFloat64()
		}
		for i := range s.Duals {
			s.Duals[i] = 10 * r.NormFloat64()
		}
		warm, warmErr := p.Solve(context.Background(), Options{Start: s})
		for _, e := range []error{ErrInfeasible, ErrUnbounded} {
			if errors.Is(coldErr, e) != errors.Is(warmErr, e) {
				t.Errorf("seed %d: %v from a start, %v without", seed, warmErr, coldErr)
			}
		}
		if coldErr == nil && (warmErr != nil || math.Abs(warm.Objective-cold.Objective) > 1e-7*(1+math.Abs(cold.Objective))) {
			t.Errorf("seed %d: %v from a start, which should change nothing", seed, warmErr)
		}
	}
	p, _ := invented(1, 3, 2).maxMin()
	if _, err := p.Solve(context.Background(), Options{Start: &Solution{}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v for a start of another problem, want ErrInvalid", err)
	}
}
