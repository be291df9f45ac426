package lookahead

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestResume checks that with very many tasks a search goes on from the hint, and puts new tasks where they come by area.
func TestResume(t *testing.T) {
	p := &Problem{Nodes: []Node{{Devices: 8}, {Devices: 8}}}
	add := func(seconds float64) {
		p.Tasks = append(p.Tasks, Task{Weight: 1, Candidates: []Candidate{{Counts: []int{4}, Devices: 4, Seconds: seconds}, {Counts: []int{8}, Devices: 8, Seconds: seconds}}})
	}
	var h Hint
	for i := range manyTasks + 1 { // the areas of the hint ascend but for the first task
		add(float64(100 + i))
		h.Order, h.Candidates = append(h.Order, i), append(h.Candidates, Intent{Candidate: 0, Strict: i == 7})
	}
	h.Order[0], h.Order[5] = 5, 0
	h.Candidates[9].Candidate = -1
	add(1)
	add(6000)
	add(4000)
	short, between, long := len(p.Tasks)-3, len(p.Tasks)-1, len(p.Tasks)-2
	plan, err := Search(t.Context(), p, Options{Hint: h})
	if err != nil {
		t.Fatal(err)
	}
	if end := plan.Order[len(plan.Order)-2:]; plan.Order[0] != short || end[0] != between || end[1] != long {
		t.Errorf("the order is from %d to %v, want from the short new task %d to the long ones %d and %d", plan.Order[0], end, short, between, long)
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
