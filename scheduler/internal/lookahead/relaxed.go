package lookahead

import (
	"cmp"
	"math"
	"slices"
)

// relaxed is the Lagrangian relaxation of a problem. It has the number of devices of each group at every time, but no
// nodes. Devices of each group have a price at every time, and each task has a price λ of its completion time. Then tasks
// are independent, and for any prices and λ >= 0
//
//	Σ_tasks  min over its candidates and starts ( cost + λ end + ∫ price )
//	+  min over the makespan M ( (End - Σ λ) M  -  Σ_groups devices ∫_0^M price )
//
// is a lower bound on the cost of every schedule: no task ends after M, and no device is in use then (Geoffrion,
// Lagrangean relaxation for integer programming, Mathematical Programming Study 2, 1974; with starts at whole units of
// time it is the relaxation of Dyer and Wolsey, Formulating the single machine sequencing problem with release dates as a
// mixed integer program, Discrete Applied Mathematics 26, 1990). Prices are constant between the times of a grid and zero
// after it.
type relaxed struct {
	p       *Problem
	times   []float64     // the grid, in seconds from now, ascending from 0
	devices []float64     // by group
	price   [][]float64   // by group and interval, of a device-second
	sums    [][]priceSum  // by group and time
	lambda  []float64     // by task
	options []taskOptions // by task
	picks   []pick        // by task, the best option at these prices
	use     [][]float64   // by group and interval, device-seconds of the picks
	until   int           // index of M in times
	steps   int           // work done
	floors  floors        // at these prices

	order []int        // scratch of undominated
	kept  []*Candidate // scratch of undominated
}

// priceSum is the price of a device from now until a time of the grid, and per second after it.
type priceSum struct{ at, paid, price float64 }

// taskOptions is the options of a task, without the parts that depend on prices.
type taskOptions struct {
	held *option  // keeping its devices, nil if it has none
	rest []option // undominated candidates
}

// option is a candidate of a task, or keeping its devices.
type option struct {
	candidate        int32 // index, or keepHeld
	group            int32
	end              int32 // index in times of the last one before its end, if it starts now
	devices, seconds float64
	least            float64 // cost if it starts now
	slope            float64 // least cost of a second of delay

	floor, span int32   // its floor, and the last of floors.spans that is not longer than seconds
	part        float64 // of the way from span to the next one
}

// pick is an option with a start. The zero pick is that of a task that is left out.
type pick struct {
	*option
	start, end float64
	cost       float64 // including prices
}

// keepHeld stands for the candidate of a task that keeps its devices.
const keepHeld = -1

func newRelaxed(p *Problem, times []float64, memory *Memory) *relaxed {
	r := &relaxed{p: p, times: times, lambda: make([]float64, len(p.Tasks)), picks: make([]pick, len(p.Tasks))}
	for _, n := range p.Nodes {
		for len(r.devices) <= n.Group {
			r.devices = append(r.devices, 0)
		}
		r.devices[n.Group] += float64(n.Devices)
	}
	r.floors = newFloors(len(r.devices), times)
	for range r.devices {
		r.price = append(r.price, make([]float64, len(times)-1))
		r.use = append(r.use, make([]float64, len(times)-1))
		r.sums = append(r.sums, make([]priceSum, len(times)))
	}
	all := 0
	for i := range p.Tasks {
		all += len(p.Tasks[i].Candidates)
	}
	room := slices.Grow(memory.options[:0], all)
	r.options = make([]taskOptions, len(p.Tasks))
	for i := range p.Tasks {
		r.options[i], room = r.optionsOf(&p.Tasks[i], room)
	}
	memory.options = room
	return r
}

// optionsOf returns the options of t, and room, to which they are appended.
func (r *relaxed) optionsOf(t *Task, room []option) (b taskOptions, all []option) {
	if len(t.Held) > 0 {
		b.held = &option{candidate: keepHeld, group: int32(r.p.Nodes[t.Held[0].Node].Group), end: r.place(t.Left), devices: float64(devices(t.Held)),
			seconds: t.Left, least: r.p.keeping(t)}
		if t.Fixed {
			return b, room
		}
	}
	from := len(room)
	for _, i := range r.undominated(t) {
		w := &t.Candidates[i]
		o := option{candidate: int32(i), group: int32(w.Group), end: r.place(w.Seconds), devices: float64(w.Devices),
			seconds: w.Seconds, least: r.p.least(t, w), slope: r.p.urgency(t, w.Seconds)}
		r.floors.assign(&o)
		room = append(room, o)
	}
	b.rest = room[from:]
	return b, room
}

// place returns the index of the last time of the grid that is not after s.
func (r *relaxed) place(s float64) int32 {
	at, found := slices.BinarySearch(r.times, s)
	if found {
		return int32(at)
	}
	return int32(at - 1)
}

// undominated lists the candidates of t, but those that another one of the same group covers.
func (r *relaxed) undominated(t *Task) []int {
	r.order = r.order[:0]
	for i := range t.Candidates {
		r.order = append(r.order, i)
	}
	inOrder := func(a, b int) int { return t.Candidates[a].compare(&t.Candidates[b]) }
	if !slices.IsSortedFunc(r.order, inOrder) {
		slices.SortStableFunc(r.order, inOrder)
	}
	group, shortest := -1, inf
	return slices.DeleteFunc(r.order, func(i int) bool {
		w := &t.Candidates[i]
		if w.Group != group {
			group, shortest, r.kept = w.Group, inf, r.kept[:0]
		}
		if w.Seconds >= shortest && slices.ContainsFunc(r.kept, func(o *Candidate) bool { return o.covers(w) }) {
			return true
		}
		shortest = min(shortest, w.Seconds)
		r.kept = append(r.kept, w)
		return false
	})
}

// compare orders candidates of a task such that each comes before those that it covers.
func (w *Candidate) compare(o *Candidate) int {
	switch {
	case w.Group != o.Group:
		return w.Group - o.Group
	case w.Devices != o.Devices:
		return w.Devices - o.Devices
	}
	return cmp.Or(cmp.Compare(w.Seconds, o.Seconds), cmp.Compare(w.Idle, o.Idle), slices.Compare(o.By, w.By))
}

// covers reports whether w costs no more than o for every common start.
func (w *Candidate) covers(o *Candidate) bool {
	return w.Group == o.Group && w.Devices <= o.Devices && w.Seconds <= o.Seconds && w.Idle <= o.Idle && w.asPatient(o)
}

// asPatient reports whether no latest start of w is before that of o.
func (w *Candidate) asPatient(o *Candidate) bool {
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
		paid := 0.0
		for i, at := range r.times[:len(price)] {
			r.sums[g][i] = priceSum{at, paid, price[i]}
			paid += price[i] * (r.times[i+1] - at)
		}
		r.sums[g][len(price)] = priceSum{at: r.times[len(price)], paid: paid}
	}
	r.floors.update(r.sums)
	sum := r.end()
	for i := range r.p.Tasks {
		if r.choose(i) {
			sum += r.picks[i].cost
		}
	}
	return sum
}

// end sets until to the best makespan, and returns its term of the bound.
func (r *relaxed) end() float64 {
	slope := r.p.End
	for _, v := range r.lambda {
		slope -= v
	}
	slope = max(0, slope) // rounding may make it negative
	least := inf
	for i, at := range r.times {
		c := slope * at
		for g, n := range r.devices {
			c -= n * r.sums[g][i].paid
		}
		if c < least {
			least, r.until = c, i
		}
	}
	return least
}

// choose sets the pick of task i; false if it is left out.
func (r *relaxed) choose(i int) bool {
	last, best := r.picks[i].option, pick{cost: inf}
	b := &r.options[i]
	if h := b.held; h != nil {
		best = pick{option: h, end: h.seconds, cost: h.least + r.lambda[i]*h.seconds + h.devices*r.sums[h.group][h.end].upTo(h.seconds)}
	}
	if last != nil && last.candidate >= 0 { // most likely still the best, which ends the search of the others early
		r.consider(i, last, &best)
	}
	for k := range b.rest {
		if o := &b.rest[k]; !r.isWorse(o, r.lambda[i], best.cost) {
			r.consider(i, o, &best)
		}
	}
	if r.picks[i] = best; best.option == nil {
		return false
	}
	r.count(best.group, best.start, best.end, best.devices)
	return true
}

// isWorse reports whether o costs more than a cost from any start on. Rounding errors do not count.
func (r *relaxed) isWorse(o *option, lambda, than float64) bool {
	base, more := o.least+lambda*o.seconds, r.floors.lowerBound(o)
	return base+more-1e-9*(math.Abs(base)+more) > than
}

// upTo returns the price of a device from now until s, which is in the interval after t.at.
func (t *priceSum) upTo(s float64) float64 { return t.paid + t.price*(s-t.at) }

// consider sets best to a start of task i with option b if that is better. The cost without prices grows by at least the
// urgency and λ per second of delay. Prices are linear between the starts for which the start or the end is at a time
// of the grid. So only these starts are candidates.
func (r *relaxed) consider(i int, b *option, best *pick) {
	lambda, sums := r.lambda[i], r.sums[b.group]
	base, slope := b.least+lambda*b.seconds, b.slope+lambda
	if c := base + b.devices*sums[b.end].upTo(b.seconds); c < best.cost {
		*best = pick{b, 0, b.seconds, c}
	}
	start, from, to, last := 0.0, 0, int(b.end), len(sums)-1
	for from < last && base+slope*start < best.cost {
		r.steps++
		next := sums[from+1].at // the next start with a start or an end at a time of the grid
		if to < last && sums[to+1].at-b.seconds < next {
			to++
			next = max(start, sums[to].at-b.seconds)
		} else {
			from++
		}
		pays := b.devices * (sums[to].upTo(next+b.seconds) - sums[from].upTo(next))
		if base+slope*next+pays < best.cost { // the left side is a lower bound on the cost
			t := &r.p.Tasks[i]
			c := r.p.starting(t, &t.Candidates[b.candidate], start) + lambda*(start+b.seconds) + slope*(next-start) + pays
			if c < best.cost {
				*best = pick{b, next, next + b.seconds, c}
			}
		}
		start = next
	}
}

// count adds devices of group g to use between two times.
func (r *relaxed) count(g int32, from, to, devices float64) {
	at, _ := slices.BinarySearch(r.times, from)
	for i := max(at-1, 0); i+1 < len(r.times) && r.times[i] < to; i++ {
		if overlap := min(to, r.times[i+1]) - max(from, r.times[i]); overlap > 0 {
			r.use[g][i] += devices * overlap
		}
	}
}
