package lookahead

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestAnneal checks that annealing ends at the best proposal it found, that this is no
// worse than the first, and that its cost is right.
func TestAnneal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSearch(problems(t), Options{Seed: 1})
		s.trySimple()
		before := s.cost
		s.anneal(context.Background(), 20)
		if s.cost > before {
			t.Fatalf("annealing went from %g to %g", before, s.cost)
		}
		if before == inf {
			return
		}
		if c := s.f.run(&s.best, inf); math.Abs(c-s.cost) > 1e-9*math.Abs(c) {
			t.Fatalf("the plan costs %g, not %g", c, s.cost)
		}
	})
}

// TestAnnealedIsBetter checks that with many jobs for few devices, annealing before
// improving lowers the mean cost.
func TestAnnealedIsBetter(t *testing.T) {
	var improved, annealed float64
	for seed := range uint64(10) {
		for _, anneal := range []bool{false, true} {
			s := newSearch(city(60, 8, 6, seed, 4), Options{Seed: seed})
			s.trySimple()
			if anneal {
				s.anneal(t.Context(), 600)
			}
			s.improve(t.Context(), 600)
			if anneal {
				annealed += s.cost
			} else {
				improved += s.cost
			}
		}
	}
	t.Logf("improved alone %.0f, annealed before %.0f", improved, annealed)
	if annealed >= improved {
		t.Errorf("plans cost %g annealed, %g without", annealed, improved)
	}
}
