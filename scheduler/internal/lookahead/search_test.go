package lookahead

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func mustSearch(t testing.TB, p *Problem, o Options) Schedule {
	t.Helper()
	plan, err := Search(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// problems draws problems with few nodes and tasks. Every task fits.
func problems(t *rapid.T) *Problem {
	p := &Problem{
		Price: rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "price"),
		End:   rapid.SampledFrom([]float64{0, 1}).Draw(t, "end"),
		Value: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "value"), Window: 20,
		Power: rapid.SampledFrom([]float64{1, 2, 3.5}).Draw(t, "power"),
	}
	free := []int{}
	for range rapid.IntRange(1, 3).Draw(t, "nodes") {
		n := rapid.IntRange(1, 4).Draw(t, "devices")
		node := Node{Group: rapid.IntRange(0, 1).Draw(t, "group"), Devices: n}
		if rapid.Bool().Draw(t, "few CPUs") {
			node.Host = spec.Host{MilliCPUs: int64(2 * n), Bytes: spec.Unlimited}
		}
		p.Nodes = append(p.Nodes, node)
		free = append(free, n)
	}
	for range rapid.IntRange(0, 4).Draw(t, "tasks") {
		k := Task{Weight: float64(rapid.IntRange(1, 3).Draw(t, "weight")), Age: float64(rapid.IntRange(0, 20).Draw(t, "age")), Alone: float64(rapid.IntRange(5, 20).Draw(t, "alone"))}
		cases := 0
		if rapid.Bool().Draw(t, "due") {
			k.Late, cases = 10, rapid.IntRange(1, 3).Draw(t, "cases")
			k.Tardy = float64(rapid.IntRange(0, 3).Draw(t, "tardy"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "candidates") {
			w := drawCandidate(t, p.Nodes)
			for range cases {
				w.By = append(w.By, float64(rapid.IntRange(-5, 20).Draw(t, "by")))
			}
			slices.Sort(w.By)
			if k.Work == 0 || w.area() < k.Work {
				k.Work = w.area()
			}
			k.Candidates = append(k.Candidates, w)
		}
		node := rapid.IntRange(-1, len(free)-1).Draw(t, "node")
		if node >= 0 && free[node] > 0 {
			n := rapid.IntRange(1, free[node]).Draw(t, "held")
			free[node] -= n
			k.Held = []Slot{{Node: node, Devices: n}}
			k.Left = float64(rapid.IntRange(1, 30).Draw(t, "left"))
			k.Fixed = rapid.Bool().Draw(t, "fixed")
		}
		p.Tasks = append(p.Tasks, k)
	}
	return p
}

// drawCandidate draws a candidate that fits on idle nodes.
func drawCandidate(t *rapid.T, all []Node) Candidate {
	w := Candidate{Group: all[rapid.IntRange(0, len(all)-1).Draw(t, "in the group of")].Group, Idle: float64(rapid.IntRange(0, 3).Draw(t, "idle"))}
	w.Seconds = w.Idle + float64(rapid.IntRange(1, 20).Draw(t, "seconds"))
	all = slices.DeleteFunc(slices.Clone(all), func(n Node) bool { return n.Group != w.Group })
	for _, n := range all[:rapid.IntRange(1, len(all)).Draw(t, "spread")] {
		c := rapid.IntRange(1, n.Devices).Draw(t, "count")
		w.Counts = append(w.Counts, c)
		w.Devices += c
	}
	slices.Sort(w.Counts)
	slices.Reverse(w.Counts)
	w.Host.MilliCPUs = int64(rapid.IntRange(0, 3).Draw(t, "CPUs"))
	if !fits(&w, all) {
		w.Host.MilliCPUs = 2 // enough for all devices of a node
	}
	return w
}

// fits reports whether there is room for w on idle nodes.
func fits(w *Candidate, all []Node) bool {
	_, ok := newNodes(all).fit(w, nil)
	return ok
}

// TestPlansAddUp checks that the cost of a schedule is the sum over its assignments,
// and that no node is ever overcommitted.
func TestPlansAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		plan, err := Search(t.Context(), p, Options{Tries: 20, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		cost, last := 0.0, 0.0
		for i, c := range plan.Assignments {
			k := &p.Tasks[i]
			switch {
			case c.Keep:
				cost += p.cost(k, k.kept())
				if len(k.Held) == 0 {
					t.Fatalf("task %d keeps devices that it does not hold", i)
				}
			case c.Candidate < 0:
				if len(k.Candidates) > 0 {
					t.Fatalf("task %d is left out though it fits", i)
				}
				continue
			default:
				w := &k.Candidates[c.Candidate]
				cost += p.cost(k, w.at(c.Start))
				if slices.ContainsFunc(c.Slots, func(s Slot) bool { return p.Nodes[s.Node].Group != w.Group }) {
					t.Fatalf("task %d: slots %v are not all in group %d", i, c.Slots, w.Group)
				}
				if got := counts(c.Slots); !slices.Equal(got, w.Counts) {
					t.Fatalf("task %d: slots %v for counts %v", i, c.Slots, w.Counts)
				}
			}
			if k.Fixed && len(k.Held) > 0 && !c.Keep {
				t.Fatalf("task %d is fixed and not kept", i)
			}
			last = max(last, c.End)
		}
		cost += p.End * last
		if math.Abs(cost-plan.Cost) > 1e-6*(1+math.Abs(cost)) {
			t.Fatalf("the choices cost %g, the plan says %g", cost, plan.Cost)
		}
		checkRoom(t, p, plan)
	})
}

func counts(slots []Slot) (out []int) {
	seen := map[int]bool{}
	for _, s := range slots {
		if seen[s.Node] {
			return nil
		}
		seen[s.Node] = true
		out = append(out, s.Devices)
	}
	return out
}

// checkRoom recounts the resources in use at every start.
func checkRoom(t *rapid.T, p *Problem, plan Schedule) {
	for _, at := range plan.Assignments {
		if at.End == inf {
			continue
		}
		used, cpus := make([]int, len(p.Nodes)), make([]int64, len(p.Nodes))
		for _, c := range plan.Assignments {
			if c.End == inf || c.Start > at.Start || c.End <= at.Start {
				continue
			}
			for _, s := range c.Slots {
				if used[s.Node] += s.Devices; used[s.Node] > p.Nodes[s.Node].Devices {
					t.Fatalf("at %g s node %d gives %d of %d devices", at.Start, s.Node, used[s.Node], p.Nodes[s.Node].Devices)
				}
				if cpus[s.Node] += s.Host.MilliCPUs; p.Nodes[s.Node].limited() && cpus[s.Node] > p.Nodes[s.Node].Host.MilliCPUs {
					t.Fatalf("at %g s node %d gives %d of %d CPUs", at.Start, s.Node, cpus[s.Node], p.Nodes[s.Node].Host.MilliCPUs)
				}
			}
		}
	}
}

// TestSearchFindsTheBest compares a search of many tries with the best of all
// proposals.
func TestSearchFindsTheBest(t *testing.T) {
	missed, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		plan, err := Search(t.Context(), p, Options{Tries: 2000, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		best := exhaust(p)
		if plan.Cost < best-1e-9 {
			t.Fatalf("the search found %g, below the least of all, %g", plan.Cost, best)
		}
		all++
		if plan.Cost > best+1e-6*math.Abs(best) {
			missed++
		}
	})
	if missed*20 > all {
		t.Errorf("%d of %d plans are not the best", missed, all)
	}
}

// exhaust returns the least cost of all proposals.
func exhaust(p *Problem) float64 {
	s := newSearch(p, Options{})
	s.trySimple()
	if s.cost == inf {
		return inf
	}
	best := s.cost
	s.next.set(&s.best)
	var each func(k int)
	each = func(k int) {
		if k == len(s.free) {
			permute(s.next.order, 0, func() { best = min(best, s.f.run(&s.next, inf)) })
			return
		}
		i := s.free[k]
		for _, strict := range []bool{false, true} {
			s.next.strict[i] = strict
			for c := range p.Tasks[i].Candidates {
				s.next.keep[i], s.next.candidate[i] = false, c
				each(k + 1)
			}
		}
		if len(p.Tasks[i].Held) > 0 {
			s.next.keep[i] = true
			each(k + 1)
		}
	}
	each(0)
	return best
}

func permute(v []int, k int, f func()) {
	if k == len(v) {
		f()
		return
	}
	for i := k; i < len(v); i++ {
		v[k], v[i] = v[i], v[k]
		permute(v, k+1, f)
		v[k], v[i] = v[i], v[k]
	}
}

// TestPreemption checks that a long task yields its devices to a short one only if the
// restart is cheap enough.
func TestPreemption(t *testing.T) {
	for _, c := range []struct {
		restart float64 // s
		keeps   bool
	}{{1, false}, {1000, true}} {
		p := &Problem{Nodes: []Node{{Devices: 1}}, Tasks: []Task{
			{Weight: 1, Held: []Slot{{Node: 0, Devices: 1}}, Left: 500, Candidates: []Candidate{{Counts: []int{1}, Devices: 1, Idle: c.restart, Seconds: 500 + c.restart}}},
			{Weight: 1, Candidates: []Candidate{{Counts: []int{1}, Devices: 1, Seconds: 10}}},
		}}
		plan := mustSearch(t, p, Options{Tries: 100})
		if plan.Assignments[0].Keep != c.keeps {
			t.Errorf("a restart costs %g s: the running task keeps its devices: %v, want %v", c.restart, plan.Assignments[0].Keep, c.keeps)
		}
	}
}

// TestRoomForLateTask checks that a late task gets room where it needs it, from tasks
// without a deadline if they hold enough.
func TestRoomForLateTask(t *testing.T) {
	whole := Candidate{Counts: []int{4}, Devices: 4, Seconds: 10, By: []float64{0}}
	p := &Problem{Tasks: []Task{{Weight: 1, Late: 1e6, Candidates: []Candidate{{Counts: []int{1}, Devices: 1, Seconds: 11, By: []float64{-1}}, whole, {Counts: []int{2}, Devices: 2, Seconds: 12, By: []float64{-2}}}}}}
	for node := range 8 {
		p.Nodes = append(p.Nodes, Node{Devices: 8})
		for k := range 4 { // of two devices each
			task := Task{Weight: 1, Held: []Slot{{Node: node, Devices: 2}}, Left: 50, Candidates: []Candidate{{Counts: []int{2}, Devices: 2, Idle: 40, Seconds: 90}}}
			if node != 5 || k < 2 {
				task.Candidates[0].By, task.Late = []float64{-40}, 1e6
			}
			p.Tasks = append(p.Tasks, task)
		}
	}
	for seed := range uint64(5) {
		s := newSearch(p, Options{Seed: seed})
		s.trySimple()
		s.next.set(&s.best)
		if !s.punctual(0) || s.next.candidate[0] != 1 {
			t.Fatalf("candidate %d counts as on time, want 1", s.next.candidate[0])
		}
		s.vacate(5, 4)
		var stopped []int
		for _, i := range s.runs {
			if !s.next.keep[i] {
				stopped = append(stopped, i)
			}
		}
		if want := []int{1 + 4*5 + 2, 1 + 4*5 + 3}; !slices.Equal(stopped, want) {
			t.Errorf("seed %d: %v are restarted, want %v, which have no deadline", seed, stopped, want)
		}
		plan := mustSearch(t, p, Options{Tries: 200, Seed: seed})
		if c := plan.Assignments[0]; c.Start != 0 || c.Candidate != 1 || c.Slots[0].Node != 5 {
			t.Errorf("seed %d: it starts at %g s with candidate %d on %v, want at once with candidate 1 on node 5", seed, c.Start, c.Candidate, c.Slots)
		}
	}
}

// TestLatestStart checks that a task starts by its latest start although a later start
// is cheaper.
func TestLatestStart(t *testing.T) {
	for _, c := range []struct{ latest, start float64 }{{1000, 10}, {0, 0}} {
		p := &Problem{Nodes: []Node{{Devices: 2}}, Tasks: []Task{
			{Weight: 1, Candidates: []Candidate{{Counts: []int{2}, Devices: 2, Seconds: 10}}},
			{Weight: 0.1, Late: 100, Candidates: []Candidate{{Counts: []int{1}, Devices: 1, Seconds: 100, By: []float64{c.latest}}}},
		}}
		plan := mustSearch(t, p, Options{Tries: 50})
		if got := plan.Assignments[1].Start; got != c.start {
			t.Errorf("to start by %g s: starts at %g s, want %g", c.latest, got, c.start)
		}
	}
}

func TestSearchRepeatsAndStops(t *testing.T) {
	p := crowd(40, 16)
	first := mustSearch(t, p, Options{Tries: 100, Seed: 3})
	second := mustSearch(t, p, Options{Tries: 100, Seed: 3})
	if diff := gocmp.Diff(first, second); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	short, err := Search(t.Context(), p, Options{Tries: 1 << 30, Steps: 1_000_000})
	if err != nil || short.Steps > 1_100_000 {
		t.Errorf("%d steps, error %v, want about 1,000,000", short.Steps, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Search(ctx, p, Options{Tries: 1 << 30}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// TestHint checks that a search with a hint is no worse than the hint.
func TestHint(t *testing.T) {
	p := crowd(40, 16)
	good := mustSearch(t, p, Options{Tries: 1000})
	h := Hint{Order: good.Order}
	for _, i := range good.Order {
		h.Candidates = append(h.Candidates, Intent{good.Assignments[i].Candidate, good.Strict[i]})
	}
	again, err := Search(t.Context(), p, Options{Hint: h})
	if err != nil || again.Cost > good.Cost {
		t.Errorf("cost %g, error %v, want at most %g", again.Cost, err, good.Cost)
	}
}

// crowd returns a problem of waiting tasks with candidates of 1, 2, 4 and 8 devices on
// nodes of 8.
func crowd(tasks, nodes int) *Problem {
	p := &Problem{Price: 6 / float64(8*nodes), End: 1}
	for range nodes {
		p.Nodes = append(p.Nodes, Node{Devices: 8})
	}
	for i := range tasks {
		k := Task{Weight: 1}
		for n := 1; n <= 8; n *= 2 {
			run := float64(100+37*i%1000) / math.Pow(float64(n), 0.8)
			k.Candidates = append(k.Candidates, Candidate{Counts: []int{n}, Devices: n, Idle: 60, Seconds: 60 + run})
		}
		p.Tasks = append(p.Tasks, k)
	}
	return p
}

// BenchmarkSearch schedules waiting tasks with four candidates each.
func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct{ tasks, nodes int }{{50, 8}, {200, 64}, {1000, 1250}} {
		b.Run(fmt.Sprintf("tasks=%d/nodes=%d", c.tasks, c.nodes), func(b *testing.B) {
			p := crowd(c.tasks, c.nodes)
			for b.Loop() {
				if _, err := Search(b.Context(), p, Options{Tries: 200}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestGapOfNoPlan checks the gap without a feasible schedule.
func TestGapOfNoPlan(t *testing.T) {
	p := &Problem{Nodes: []Node{{Devices: 1}}, Tasks: []Task{{Weight: 1, Candidates: []Candidate{{Counts: []int{2}, Devices: 2, Seconds: 1}}}}}
	plan, err := Search(t.Context(), p, Options{Tries: 5, Rounds: 5})
	if err != nil || !math.IsInf(plan.Cost, 1) {
		t.Fatalf("cost %g, error %v", plan.Cost, err)
	}
	if gap := p.Gap(&plan); !math.IsInf(gap, 1) {
		t.Errorf("gap %g", gap)
	}
}
