package lookahead

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Giving up at a limit gives up nothing that costs no more than it.
func TestLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		s := &search{f: newForward(p), p: p, cost: inf}
		s.simple()
		if s.cost == inf || len(s.best.order) == 0 {
			t.Skip("nothing to start")
		}
		order := rapid.Permutation(slices.Clone(s.best.order)).Draw(t, "order")
		s.best.order = order
		cost := s.f.run(&s.best, inf)
		slack := 1e-9 * (1 + math.Abs(cost))
		if got := s.f.run(&s.best, cost+slack); got != cost {
			t.Errorf("with a limit of %g the cost is %g, without %g", cost+slack, got, cost)
		}
	})
}

// Who is behind a strict task that does not fit waits for it, even where it fits.
func TestStrict(t *testing.T) {
	one := []Way{{Counts: []int{1}, Devices: 1, Seconds: 5}}
	p := &Problem{Nodes: []Node{{Devices: 2}}, Tasks: []Task{
		{Weight: 1, Due: inf, Held: []Slot{{0, 1}}, Left: 10},
		{Weight: 1, Due: inf, Ways: []Way{{Counts: []int{2}, Devices: 2, Seconds: 20}}},
		{Weight: 1, Due: inf, Ways: one},
	}}
	for _, c := range []struct {
		strict bool
		starts float64
	}{{false, 0}, {true, 30}} {
		f := newForward(p)
		f.run(&schedule{order: []int{1, 2}, way: []int{-1, 0, 0}, keep: []bool{true, false, false}, strict: []bool{false, c.strict, false}}, inf)
		if f.started[1] != 10 || f.started[2] != c.starts {
			t.Errorf("strict %v: they start at %g and %g s, want 10 and %g", c.strict, f.started[1], f.started[2], c.starts)
		}
	}
}

func TestCost(t *testing.T) {
	p := &Problem{Price: 0.5, Value: 2, Window: 100}
	k := &Task{Weight: 3, Work: 40, Due: 150, Latest: 60, Late: 10}
	for _, c := range []struct {
		name string
		run  course
		want float64
	}{
		{"all within the window", course{0, 10, 60, 20, 2}, 3*60 + 60 - 2*40},
		{"half of the work within it", course{20, 50, 120, 20, 2}, 3*120 + 100 - 2*40*50./70},
		{"none of it, in danger", course{60, 100, 140, 20, 2}, 3*140 + 80 + 10},
		{"late by as much as may be", course{60, 100, 160, 20, 2}, 3*160 + 100 + 10*10 + 20},
		{"late, whatever is believed", course{60, 100, 160, 0, 2}, 3*160 + 100 + 10*10},
		{"starts late", course{80, 100, 120, 20, 2}, 3*120 + 40 + 10*20},
		{"kept, however late it started", course{-inf, 100, 120, 20, 2}, 3*120 + 120},
	} {
		if got := p.cost(k, c.run); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: cost %g, want %g", c.name, got, c.want)
		}
	}
}
