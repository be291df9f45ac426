package lookahead

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFloors compares the floor of options with the least cost of a fine grid of starts, and the picks with those among all
// options.
func TestFloors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(t)
		r := newRelaxed(p, rapid.SampledFrom([][]float64{{0, 3, 10, 11, 40}, {0, 1}, {0}, {0, 5, 10, 20}}).Draw(t, "grid"), &Memory{})
		for g := range r.price {
			for i := range r.price[g] {
				r.price[g][i] = rapid.Float64Range(0, 3).Draw(t, "price")
			}
		}
		for i := range r.lambda {
			r.lambda[i] = rapid.Float64Range(0, 2).Draw(t, "price of an end")
		}
		r.bound()
		for i := range r.options {
			all := pick{cost: inf}
			if h := r.options[i].held; h != nil {
				all.cost = h.least + r.lambda[i]*h.seconds + h.devices*r.sums[h.group][h.end].upTo(h.seconds)
			}
			for k := range r.options[i].rest {
				o := &r.options[i].rest[k]
				r.consider(i, o, &all)
				floor := r.floors.lowerBound(o)
				for n := range 200 {
					start := float64(n) / 4
					if c := o.slope*start + o.devices*r.paid(o.group, start, start+o.seconds); c < floor-1e-9*(1+c) {
						t.Fatalf("%+v from %g s on costs %g more, the floor is %g", *o, start, c, floor)
					}
				}
			}
			if r.picks[i].cost != all.cost {
				t.Fatalf("task %d: the pick costs %g, the best option %g", i, r.picks[i].cost, all.cost)
			}
		}
		whole := floors{spans: r.floors.spans, all: slices.Clone(r.floors.all)} // with all values, needed or not
		for i := range whole.all {
			w := &whole.all[i]
			w.at, w.need = slices.Clone(w.at), slices.Repeat([]bool{true}, len(w.need))
		}
		whole.update(r.sums)
		for _, options := range r.options {
			for k := range options.rest {
				if o := &options.rest[k]; r.floors.lowerBound(o) != whole.lowerBound(o) {
					t.Fatalf("%+v: the floor is %g, with all values %g", *o, r.floors.lowerBound(o), whole.lowerBound(o))
				}
			}
		}
	})
}

// paid returns the price of a device between two times.
func (r *relaxed) paid(group int32, from, to float64) (sum float64) {
	for i, price := range r.price[group] {
		sum += price * max(0, min(to, r.times[i+1])-max(from, r.times[i]))
	}
	return sum
}

// TestFloorIsLeast checks that a floor is not lower than it must be, if its slope is not rounded and its run time is a
// difference of times of the grid.
func TestFloorIsLeast(t *testing.T) {
	times := []float64{0, 3, 10, 11}
	p := &Problem{Nodes: []Node{{Devices: 8}}, Tasks: []Task{{Weight: 1}}}
	for _, seconds := range []float64{1, 3, 7, 8, 10, 11, 30} {
		p.Tasks[0].Candidates = []Candidate{{Counts: []int{2}, Devices: 2, Seconds: seconds}}
		r := newRelaxed(p, times, &Memory{})
		copy(r.price[0], []float64{2, 0.25, 4})
		r.bound()
		o := &r.options[0].rest[0]
		least := inf
		for n := range 200 {
			start := float64(n) / 10
			least = min(least, start+2*r.paid(0, start, start+seconds))
		}
		if floor := r.floors.lowerBound(o); floor > least+1e-9 || floor < least-1e-9 {
			t.Errorf("%g s: the floor is %g, the least cost %g", seconds, floor, least)
		}
	}
}

// TestFloorsRuleOut checks that most options are ruled out.
func TestFloorsRuleOut(t *testing.T) {
	p := city(100, 40, 20, 1, 4)
	r := newRelaxed(p, []float64{0, 1000, 2000, 4000, 8000, 16000}, &Memory{})
	a := newAscent(r, Prices{})
	for range 20 {
		a.round(1e9)
	}
	r.steps = 0
	r.bound()
	steps := r.steps
	for i := range r.options {
		for k := range r.options[i].rest {
			best := r.picks[i]
			r.consider(i, &r.options[i].rest[k], &best)
		}
	}
	if all := r.steps - steps; steps > all/2 {
		t.Errorf("%d steps, %d without floors", steps, all)
	}
}
