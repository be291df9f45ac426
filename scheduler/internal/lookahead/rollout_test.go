package lookahead

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLimit checks that a rollout with a limit returns every cost that does not exceed it.
func TestLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		s := newSearch(p, Options{})
		s.trySimple()
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

// TestStrict checks that a task after a strict one that does not fit waits for it, even if it fits itself.
func TestStrict(t *testing.T) {
	one := []Candidate{{Counts: []int{1}, Devices: 1, Seconds: 5}}
	p := &Problem{Nodes: []Node{{Devices: 2}}, Tasks: []Task{
		{Weight: 1, Held: []Slot{{Node: 0, Devices: 1}}, Left: 10},
		{Weight: 1, Candidates: []Candidate{{Counts: []int{2}, Devices: 2, Seconds: 20}}},
		{Weight: 1, Candidates: one},
	}}
	for _, c := range []struct {
		strict bool
		starts float64
	}{{false, 0}, {true, 30}} {
		f := newRollout(p)
		f.run(&proposal{order: []int{1, 2}, candidate: []int{-1, 0, 0}, keep: []bool{true, false, false}, strict: []bool{false, c.strict, false}}, inf)
		if f.started[1] != 10 || f.started[2] != c.starts {
			t.Errorf("strict %v: they start at %g and %g s, want 10 and %g", c.strict, f.started[1], f.started[2], c.starts)
		}
	}
}

// TestLate checks that lateness is the sum over scenarios.
func TestLate(t *testing.T) {
	w := &Candidate{Devices: 1, Seconds: 5, By: []float64{-3, 10, 40}}
	for _, c := range []struct{ start, want float64 }{{0, 3}, {10, 13}, {20, 23 + 10}, {50, 53 + 40 + 10}} {
		if got := w.late(c.start); got != c.want {
			t.Errorf("a task that starts at %g s is late by %g s, want %g", c.start, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		task Task
		want float64
	}{
		{"nothing promised", Task{Candidates: []Candidate{{}}}, 0},
		{"another candidate is better", Task{Candidates: []Candidate{*w, {By: []float64{-1, 10, 40}}}}, 1},
		{"it had better go on", Task{Candidates: []Candidate{*w}, Held: []Slot{{Node: 0, Devices: 1}}, Tardy: 2}, 2},
	} {
		if got := c.task.leastLate(); got != c.want {
			t.Errorf("%s: late by %g s at the least, want %g", c.name, got, c.want)
		}
	}
}

func TestCost(t *testing.T) {
	p := &Problem{Price: 0.5, Value: 2, Window: 100}
	k := &Task{Weight: 3, Work: 40, Late: 10}
	for _, c := range []struct {
		name string
		run  run
		want float64
	}{
		{"all within the window", run{0, 10, 60, 0, 2}, 3*60 + 60 - 2*40},
		{"half of the work within it", run{20, 50, 120, 0, 2}, 3*120 + 100 - 2*40*50./70},
		{"none of it", run{60, 100, 140, 0, 2}, 3*140 + 80},
		{"late", run{60, 100, 160, 30, 2}, 3*160 + 100 + 10*30},
		{"kept, whenever it started", run{-inf, 100, 120, 0, 2}, 3*120 + 120},
	} {
		if got := p.cost(k, c.run); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: cost %g, want %g", c.name, got, c.want)
		}
	}
}

// TestLinesAsByTryingAll compares the starts with those of a rollout that tries all waiting tasks after each end.
func TestLinesAsByTryingAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		for range rapid.IntRange(0, 20).Draw(t, "more tasks") {
			p.Tasks = append(p.Tasks, Task{Weight: 1, Alone: 5, Candidates: []Candidate{drawCandidate(t, p.Nodes)}})
		}
		s := newSearch(p, Options{})
		s.trySimple()
		n := &s.best
		if s.cost == inf {
			t.Skip("nothing fits")
		}
		for range 3 {
			n.order = rapid.Permutation(slices.Clone(n.order)).Draw(t, "order")
			for _, i := range n.order {
				n.strict[i] = rapid.IntRange(0, 4).Draw(t, "strict") == 0
				n.keep[i] = len(p.Tasks[i].Held) > 0 && rapid.Bool().Draw(t, "kept")
				n.candidate[i] = rapid.IntRange(0, len(p.Tasks[i].Candidates)-1).Draw(t, "candidate")
			}
			cost := s.f.run(n, inf)
			f := newRollout(p)
			if want := tryAll(f, n); math.Abs(cost-want) > 1e-9*(1+math.Abs(cost)) {
				t.Fatalf("the cost is %g, trying all it is %g", cost, want)
			}
			for _, i := range n.order {
				if !n.keep[i] && (s.f.started[i] != f.started[i] || !slices.Equal(s.f.on[i], f.on[i])) {
					t.Fatalf("task %d starts at %g on %v, trying all at %g on %v", i, s.f.started[i], s.f.on[i], f.started[i], f.on[i])
				}
			}
		}
	})
}

// tryAll is run without a limit and without lines.
func tryAll(f *rollout, s *proposal) float64 {
	cost := f.begin(s)
	wait := slices.Clone(f.pending)
	for at := 0.0; ; at = f.end(s) {
		blocked := false
		wait = slices.DeleteFunc(wait, func(i int) bool {
			w := &f.p.Tasks[i].Candidates[s.candidate[i]]
			if blocked {
				return false
			}
			on, ok := f.now.fit(w, nil)
			if !ok {
				blocked = s.strict[i]
				return false
			}
			f.started[i], f.on[i] = at, on
			r := w.at(at)
			f.queue.Push(finish{r.end, i})
			f.last = max(f.last, r.end)
			cost += f.p.cost(&f.p.Tasks[i], r)
			return true
		})
		if len(wait) == 0 {
			return cost + f.p.End*f.last
		}
		if len(f.queue.Items) == 0 {
			return inf
		}
	}
}
