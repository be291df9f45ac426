package lookahead

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// hinted returns a problem of more than manyTasks tasks on two nodes, and a hint for them. The areas of the hint ascend but for the
// first task.
func hinted() (*Problem, Hint) {
	p, h := &Problem{Nodes: []Node{{Devices: 8}, {Devices: 8}}}, Hint{}
	for i := range manyTasks + 1 {
		p.Tasks = append(p.Tasks, newTask(float64(100+i), 4, 8))
		h.Order, h.Candidates = append(h.Order, i), append(h.Candidates, Intent{Candidate: 0, Strict: i == 7})
	}
	h.Order[0], h.Order[5] = 5, 0
	return p, h
}

// newTask returns a task of equal time on each number of devices of a node.
func newTask(seconds float64, devices ...int) Task {
	t := Task{Weight: 1}
	for _, n := range devices {
		t.Candidates = append(t.Candidates, Candidate{Counts: []int{n}, Devices: n, Seconds: seconds})
	}
	return t
}

// TestResume checks that with very many tasks a search goes on from the hint, and puts new tasks where they come by area.
func TestResume(t *testing.T) {
	p, h := hinted()
	h.Candidates[9].Candidate = -1
	short, long, between := len(p.Tasks), len(p.Tasks)+1, len(p.Tasks)+2
	p.Tasks = append(p.Tasks, newTask(1, 4), newTask(5000, 8), newTask(6000, 4))
	plan := mustSearch(t, p, Options{Hint: h})
	if end := plan.Order[len(plan.Order)-2:]; plan.Order[0] != short || end[0] != between || end[1] != long {
		t.Errorf("the order is from %d to %v, want from the short new task %d to the large ones %d and %d", plan.Order[0], end, short, between, long)
	}
	if plan.Order[1] != 5 || plan.Order[6] != 0 {
		t.Errorf("the hint begins with 5, 1, 2, 3, 4, 0, the schedule with %v", plan.Order[1:7])
	}
	for i, c := range plan.Assignments {
		if c.Candidate != 0 || plan.Strict[i] != (i == 7) {
			t.Errorf("task %d has candidate %d, strict %v, as the hint does not say", i, c.Candidate, plan.Strict[i])
		}
	}
}

// TestResumeWithoutRoom checks that a hint that is no schedule, since a task never fits, leaves nothing behind.
func TestResumeWithoutRoom(t *testing.T) {
	p, h := hinted()
	p.Tasks[3] = newTask(100, 4, 16)
	h.Candidates[3].Candidate = 1
	plan, err := Search(t.Context(), p, Options{Hint: h})
	if err != nil || len(plan.Order) != manyTasks+1 {
		t.Fatalf("%d tasks start, error %v", len(plan.Order), err)
	}
	if i := slices.Index(plan.Strict, true); i >= 0 {
		t.Errorf("task %d is strict as in the hint", i)
	}
}

// TestRoundsOfMany checks that very many tasks have few rounds from known prices.
func TestRoundsOfMany(t *testing.T) {
	p, h := hinted()
	plan := mustSearch(t, p, Options{Rounds: 5})
	var steps []int
	for _, rounds := range []int{knownRounds, 60} {
		next := mustSearch(t, p, Options{Rounds: rounds, Prices: plan.Prices, Hint: h})
		steps = append(steps, next.Steps)
	}
	if steps[0] != steps[1] {
		t.Errorf("%d and %d steps with %d and 60 rounds, want the same", steps[0], steps[1], knownRounds)
	}
}

// TestChangesOfMany checks that with many tasks random changes get twice the work of the rest.
func TestChangesOfMany(t *testing.T) {
	p := city(2*pricedMin, 40, 6, 1, 4)
	var steps []float64
	for _, tries := range []int{0, 1e6} {
		plan := mustSearch(t, p, Options{Rounds: 20, Tries: tries})
		steps = append(steps, float64(plan.Steps))
	}
	if r := steps[1] / steps[0]; r < 2.8 || r > 3.2 {
		t.Errorf("random changes and the rest take %.2f times the work of the rest, want 3", r)
	}
}

// TestSimpleOfMany: with very many tasks the search tries the proposals from the largest price on, and finds the best.
func TestSimpleOfMany(t *testing.T) {
	p := crowd(manyTasks+1, 100)
	s, all := newSearch(p, Options{}), newSearch(p, Options{})
	s.trySimple()
	least := inf
	for k := range prices {
		for _, i := range all.free {
			all.next.candidate[i] = all.cheapest(i, anyGroup)[k]
		}
		all.sortOrder(all.byArea)
		least = min(least, all.f.run(&all.next, inf))
	}
	if s.cost != least {
		t.Errorf("the best costs %g, the cheapest of all proposals %g", s.cost, least)
	}
	if c := s.f.run(&s.best, inf); c != least {
		t.Errorf("the best costs %g when it is run again, it was %g", c, least)
	}
}

// TestSimpleOfManyTies: of proposals with the same cost that at the largest price is taken, as with fewer tasks.
func TestSimpleOfManyTies(t *testing.T) {
	for _, tasks := range []int{100, manyTasks + 1} {
		p := &Problem{Price: 0.5} // 20 s and 20 device-seconds cost as much as 15 s and 30 device-seconds
		for range tasks {
			p.Nodes = append(p.Nodes, Node{Devices: 2})
			p.Tasks = append(p.Tasks, Task{Weight: 1, Candidates: []Candidate{
				{Counts: []int{1}, Devices: 1, Seconds: 20}, {Counts: []int{2}, Devices: 2, Seconds: 15}}})
		}
		s := newSearch(p, Options{})
		s.trySimple()
		if slices.ContainsFunc(s.best.candidate, func(c int) bool { return c != 0 }) {
			t.Errorf("%d tasks: the wider candidates of a lower price are taken", tasks)
		}
	}
}

// TestMemory checks that what earlier searches left in their memory changes no result.
func TestMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memory Memory
		for range 3 {
			p := problems(t)
			var plans [2]Schedule
			for i, m := range []*Memory{nil, &memory} {
				var err error
				if plans[i], err = Search(t.Context(), p, Options{Tries: 20, Rounds: 5, Memory: m}); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(plans[0], plans[1]) {
				t.Fatalf("with memory of earlier searches the schedule is %+v, without %+v", plans[1], plans[0])
			}
		}
	})
}
