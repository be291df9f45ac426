package lookahead

import (
	"slices"
)

// relaxed is a problem without its nodes: of each group there are so many devices, at every time. With a price of a
// device of each group at every time, and of each task's completion, the tasks fall apart, and
//
//	Σ_tasks  min over its ways and starts ( cost + λ end + ∫ price )
//	+  min over the end M of all ( (End - Σ λ) M  -  Σ_groups devices ∫_0^M price )
//
// is a bound on the cost of every plan, whatever the prices and λ >= 0 are: nothing ends after M, and nothing is in use
// then (Geoffrion, Lagrangean relaxation for integer programming, Mathematical Programming
// Study 2, 1974; with starts at whole units of time it is the relaxation of Dyer and Wolsey, Formulating the single
// machine sequencing problem with release dates as a mixed integer program, Discrete Applied Mathematics 26, 1990).
// Prices are constant between the times of a grid and zero after it.
type relaxed struct {
	p       *Problem
	times   []float64   // of the grid, s from now, ascending from 0
	devices []float64   // by group
	price   [][]float64 // by group and interval, of a device-second
	paid    [][]float64 // by group and time, of a device up to then
	lambda  []float64   // by task
	ways    [][]int     // by task, those that no other is better than whatever the prices are
	picks   []pick      // by task, what is best at these prices
	use     [][]float64 // by group and interval, device-seconds of the picks
	until   int         // M, as a place in the grid
	steps   int         // of work
}

// pick is how a task runs.
type pick struct {
	way        int // or keeps, or nowhere
	start, end float64
	cost       float64 // with what it pays
}

const (
	keeps   = -1 // what it holds
	nowhere = -2 // it has no ways
)

func newRelaxed(p *Problem, times []float64) *relaxed {
	r := &relaxed{p: p, times: times, lambda: make([]float64, len(p.Tasks)), picks: make([]pick, len(p.Tasks)), ways: make([][]int, len(p.Tasks))}
	for _, n := range p.Nodes {
		for len(r.devices) <= n.Group {
			r.devices = append(r.devices, 0)
		}
		r.devices[n.Group] += float64(n.Devices)
	}
	for range r.devices {
		r.price = append(r.price, make([]float64, len(times)-1))
		r.use = append(r.use, make([]float64, len(times)-1))
		r.paid = append(r.paid, make([]float64, len(times)))
	}
	for i := range p.Tasks {
		r.ways[i] = p.Tasks[i].undominated()
		r.picks[i].way = nowhere
	}
	return r
}

// undominated lists the ways of t but those that another of the same group is as good as in everything.
func (t *Task) undominated() []int {
	var keep []int
	for i := range t.Ways {
		w := &t.Ways[i]
		if !slices.ContainsFunc(keep, func(k int) bool { return t.Ways[k].covers(w) }) {
			keep = slices.DeleteFunc(keep, func(k int) bool { return w.covers(&t.Ways[k]) })
			keep = append(keep, i)
		}
	}
	return keep
}

// covers reports whether w costs no more than o whenever both start at the same time.
func (w *Way) covers(o *Way) bool {
	return w.Group == o.Group && w.Devices <= o.Devices && w.Seconds <= o.Seconds && w.Idle <= o.Idle && w.asPatient(o)
}

// asPatient reports whether w need not start before o in any case.
func (w *Way) asPatient(o *Way) bool {
	for k, by := range w.By {
		if k >= len(o.By) || by < o.By[k] {
			return false
		}
	}
	return true
}

// bound returns the bound that the prices prove, and sets picks and use.
func (r *relaxed) bound() float64 {
	for g, price := range r.price {
		clear(r.use[g])
		for i, v := range price {
			r.paid[g][i+1] = r.paid[g][i] + v*(r.times[i+1]-r.times[i])
		}
	}
	sum := r.end()
	for i := range r.p.Tasks {
		if r.choose(i) {
			sum += r.picks[i].cost
		}
	}
	return sum
}

// end finds when it is best that all ends, and returns what that contributes to the bound.
func (r *relaxed) end() float64 {
	slope := r.p.End
	for _, v := range r.lambda {
		slope -= v
	}
	slope = max(0, slope) // below by rounding alone
	least := inf
	for i, at := range r.times {
		c := slope * at
		for g, n := range r.devices {
			c -= n * r.paid[g][i]
		}
		if c < least {
			least, r.until = c, i
		}
	}
	return least
}

// choose finds what is best for task i; false if it is left out.
func (r *relaxed) choose(i int) bool {
	t := &r.p.Tasks[i]
	best := pick{way: nowhere, cost: inf}
	held := devices(t.Held)
	if held > 0 {
		g := r.p.Nodes[t.Held[0].Node].Group
		at, _ := slices.BinarySearch(r.times, t.Left)
		best = pick{way: keeps, end: t.Left}
		best.cost = r.p.keeping(t) + r.lambda[i]*t.Left + float64(held)*r.paidUpTo(g, t.Left, max(at-1, 0))
	}
	if !t.Fixed || held == 0 {
		if was := r.picks[i].way; was >= 0 { // most likely still the best, so that the others are soon out
			r.consider(i, was, &best)
		}
		for _, w := range r.ways[i] {
			r.consider(i, w, &best)
		}
	}
	r.picks[i] = best
	switch {
	case best.way == keeps:
		r.count(r.p.Nodes[t.Held[0].Node].Group, 0, t.Left, float64(held))
	case best.way >= 0:
		w := &t.Ways[best.way]
		r.count(w.Group, best.start, best.start+w.Seconds, float64(w.Devices))
	}
	return best.way != nowhere
}

// paidUpTo returns what a device of g costs up to time s, which is not before that at place i of the grid, nor after
// the next.
func (r *relaxed) paidUpTo(g int, s float64, i int) float64 {
	if i >= len(r.price[g]) {
		return r.paid[g][len(r.price[g])]
	}
	return r.paid[g][i] + r.price[g][i]*min(s-r.times[i], r.times[i+1]-r.times[i])
}

// consider looks for a start of task i in way w that is better than best. What a task costs grows with its start, by
// its urgency and λ a second at least, and what it pays is linear between the starts at which it begins or ends at a
// time of the grid: between two of them it costs no less than at the first plus so much a second.
func (r *relaxed) consider(i, way int, best *pick) {
	t := &r.p.Tasks[i]
	w := &t.Ways[way]
	n := float64(w.Devices)
	slope := r.p.urgency(t, w.Seconds) + r.lambda[i]
	last := len(r.times) - 1
	a := 0.0         // start
	from, to := 0, 0 // places of start and end in the grid
	for to < last && r.times[to+1] <= w.Seconds {
		to++
	}
	pays := n * r.paidUpTo(w.Group, w.Seconds, to)
	for {
		cost := r.p.starting(t, w, a) + r.lambda[i]*(a+w.Seconds)
		if cost >= best.cost {
			return
		}
		if c := cost + pays; c < best.cost {
			*best = pick{way, a, a + w.Seconds, c}
		}
		if from == last {
			return
		}
		r.steps++
		b := r.times[from+1] // the next start, at a time of the grid or for an end at one
		if to < last && r.times[to+1]-w.Seconds < b {
			b = max(a, r.times[to+1]-w.Seconds)
			to++
		} else {
			from++
		}
		pays = n * (r.paidUpTo(w.Group, b+w.Seconds, to) - r.paidUpTo(w.Group, b, from))
		if c := cost + slope*(b-a) + pays; c < best.cost {
			*best = pick{way, b, b + w.Seconds, c}
		}
		a = b
	}
}

// count adds devices of group g to what is in use between two times.
func (r *relaxed) count(g int, from, to, devices float64) {
	at, _ := slices.BinarySearch(r.times, from)
	for i := max(at-1, 0); i+1 < len(r.times) && r.times[i] < to; i++ {
		if overlap := min(to, r.times[i+1]) - max(from, r.times[i]); overlap > 0 {
			r.use[g][i] += devices * overlap
		}
	}
}
