package lp

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestChoiceSkipsNothing compares the best option at random prices, and the gains beside a random answer, with those of a scan of
// all options: hull and runs leave out only what cannot be chosen.
func TestChoiceSkipsNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for n := range 3000 {
		c := randomChoice(r, 6, 3, 12, n%2 == 0)
		s := newChoiceSolver(c)
		p, use, pick := make([]float64, 3), make([]float64, 3), make([]int32, s.groups)
		for k := range p {
			p[k] = 4 * r.Float64()
		}
		for g := range pick {
			pick[g] = -1
			if i := s.start[g] + r.Int32N(s.start[g+1]-s.start[g]+1); i < s.start[g+1] && s.roomFor(use, -1, i, -1) {
				pick[g] = i
				s.take(use, i, 1)
			}
			best := 0.0
			for i := s.start[g]; i < s.start[g+1]; i++ {
				best = max(best, s.reduced(i, p))
			}
			if _, got := s.bestAt(g, p); math.Abs(got-best) > 1e-9*(1+best) {
				t.Fatalf("%d: the best of group %d is worth %g, want %g: %+v", n, g, got, best, c)
			}
		}
		var want []change
		for g, now := range pick {
			had := 0.0
			if now >= 0 {
				had = s.value[now]
			}
			best := change{g, -1, 0}
			for i := s.start[g]; i < s.start[g+1]; i++ {
				if cost := had - s.value[i]; cost < best.cost && s.roomFor(use, now, i, -1) {
					best.option, best.cost = i, cost
				}
			}
			if best.option >= 0 {
				want = append(want, best)
			}
		}
		cheapestFirst(want)
		if got := s.gains(pick, use); !slices.Equal(got, want) {
			t.Fatalf("%d: gains %+v, want %+v: %+v", n, got, want, c)
		}
	}
}
