package lookahead

import (
	"context"
	"math"
	"slices"
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

// TestEfficient: random candidates are as often as not those that are cheapest in their group at some price.
func TestEfficient(t *testing.T) {
	of := func(group, devices int, seconds float64) Candidate {
		return Candidate{Group: group, Counts: []int{devices}, Devices: devices, Seconds: seconds}
	}
	p := &Problem{Price: 1, Nodes: []Node{{Group: 0, Devices: 8}, {Group: 1, Devices: 8}}, Tasks: []Task{{Weight: 1, Candidates: []Candidate{
		of(0, 1, 80), of(0, 2, 79), of(0, 4, 30), of(0, 8, 29), // 79 s on two devices are never the cheapest
		of(1, 1, 160), of(1, 2, 80), of(1, 4, 80), // slower than all of group 0 on as many devices
	}}}}
	efficient := []int{0, 2, 3, 5} // 0, 2 and 3 of group 0, and 5 of group 1
	for _, rough := range []bool{false, true} {
		s := newSearch(p, Options{Rough: rough})
		s.trySimple()
		if got := slices.Sorted(slices.Values(s.efficientOf(0))); !slices.Equal(got, efficient) {
			t.Errorf("efficient are %v, want %v", got, efficient)
		}
		drawn, draws := make([]int, len(p.Tasks[0].Candidates)), 7000
		for range draws {
			s.next.candidate[0] = 0
			s.changeCandidate(0)
			drawn[s.next.candidate[0]]++
		}
		for c, n := range drawn { // from candidate 0: a half efficient ones, a quarter at most two places on, a quarter any
			want := 1./7 + map[int]float64{0: 3, 1: 1, 2: 1}[c]/5
			if want /= 2; !rough {
				want /= 2
				if slices.Contains(efficient, c) {
					want += 1. / 2 / 4
				}
			}
			if math.Abs(float64(n)/float64(draws)-want) > 0.02 {
				t.Errorf("rough %v: candidate %d was drawn in %.3f of cases, want %.3f", rough, c, float64(n)/float64(draws), want)
			}
		}
	}
}

// TestYielding: a late task comes first, and a task that yields to it restarts in a random candidate, as often as not next.
func TestYielding(t *testing.T) {
	task := func(by float64, held ...Slot) Task {
		return Task{Weight: 1, Late: 1, Held: held, Left: 100, Candidates: []Candidate{
			{Counts: []int{2}, Devices: 2, Seconds: 10, By: []float64{by}}, {Counts: []int{1}, Devices: 1, Seconds: 20, By: []float64{by - 10}}}}
	}
	p := &Problem{Nodes: []Node{{Devices: 2}}, Tasks: []Task{task(50, Slot{Node: 0, Devices: 2}), task(500), task(0)}}
	s := newSearch(p, Options{})
	s.trySimple()
	yields, next, other, draws := 0, 0, 0, 1000
	for range draws {
		s.next.set(&s.best)
		s.next.order = []int{1, 0, 2}
		s.next.keep[0], s.next.candidate[0] = true, 0
		s.hurry(2)
		if s.next.order[0] != 2 || s.next.keep[2] {
			t.Fatalf("the late task is not first: %v", s.next.order)
		}
		if s.next.keep[0] {
			continue
		}
		yields++
		if s.next.order[1] == 0 {
			next++
		}
		if s.next.candidate[0] == 1 {
			other++
		}
	}
	if yields < draws/2 || next < yields*4/10 || next > yields*6/10 || other < yields/8 {
		t.Errorf("of %d, %d yield, %d of them come next, %d in another candidate", draws, yields, next, other)
	}
}

// TestAnnealsAnew: each pass begins at the proposal before the first, and the best of all is kept. There are twelve
// passes while a task is avoidably late, else three, and one with guessed ends.
func TestAnnealsAnew(t *testing.T) {
	late := &Problem{Nodes: []Node{{Devices: 1}}} // each of three tasks could be on time, two are late
	for range 3 {
		late.Tasks = append(late.Tasks, Task{Weight: 1, Late: 1, Candidates: []Candidate{{Counts: []int{1}, Devices: 1, Seconds: 100, By: []float64{0}}}})
	}
	better := 0
	for seed := range uint64(10) {
		for passes, p := range map[int]*Problem{1: late, 3: city(40, 6, 6, seed, 4), 12: late} {
			o := Options{Seed: seed, Rough: passes == 1}
			each, all := newSearch(p, o), newSearch(p, o)
			each.trySimple()
			all.trySimple()
			var start proposal
			start.set(&each.best)
			var costs []float64
			for range passes {
				each.next.set(&start)
				each.accept(inf)
				each.annealOnce(t.Context(), 600)
				costs = append(costs, each.cost)
			}
			all.anneal(t.Context(), 600)
			if all.cost != slices.Min(costs) {
				t.Errorf("seed %d: annealing costs %g, its passes %g", seed, all.cost, costs)
			}
			if all.rng.Uint64() != each.rng.Uint64() {
				t.Errorf("seed %d: other than %d passes", seed, passes)
			}
			if passes == 3 && all.cost < costs[0] {
				better++
			}
		}
	}
	if better < 5 {
		t.Errorf("several passes are better than one with %d of 10 seeds", better)
	}
}
