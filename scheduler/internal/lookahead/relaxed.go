package lookahead

import "slices"

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

	ranked []ranked       // scratch of undominated
	kept   [][]*Candidate // scratch of undominated, by group
}

// priceSum is the price of a device from now until a time of the grid, and per second after it.
type priceSum struct{ at, paid, price float64 }

// taskOptions is the options of a task, without the parts that depend on prices.
type taskOptions struct {
	held *option  // keeping its devices, nil if it has none
	rest []option // undominated candidates, cheapest first
}

// option is a candidate of a task, or keeping its devices.
type option struct {
	candidate        int // index, or keepHeld
	group            int
	end              int // index in times of the last one before its end, if it starts now
	devices, seconds float64
	least            float64 // cost if it starts now
	slope            float64 // least cost of a second of delay
}

// pick is an option with a start. The zero pick is that of a task that is left out.
type pick struct {
	*option
	start, end float64
	cost       float64 // including prices
}

// keepHeld stands for the candidate of a task that keeps its devices.
const keepHeld = -1

func newRelaxed(p *Problem, times []float64) *relaxed {
	r := &relaxed{p: p, times: times, lambda: make([]float64, len(p.Tasks)), picks: make([]pick, len(p.Tasks))}
	for _, n := range p.Nodes {
		for len(r.devices) <= n.Group {
			r.devices = append(r.devices, 0)
		}
		r.devices[n.Group] += float64(n.Devices)
	}
	r.kept = make([][]*Candidate, len(r.devices))
	for range r.devices {
		r.price = append(r.price, make([]float64, len(times)-1))
		r.use = append(r.use, make([]float64, len(times)-1))
		r.sums = append(r.sums, make([]priceSum, len(times)))
	}
	for i := range p.Tasks {
		r.options = append(r.options, r.optionsOf(&p.Tasks[i]))
	}
	return r
}

func (r *relaxed) optionsOf(t *Task) (b taskOptions) {
	if len(t.Held) > 0 {
		b.held = &option{candidate: keepHeld, group: r.p.Nodes[t.Held[0].Node].Group, end: r.place(t.Left), devices: float64(devices(t.Held)),
			seconds: t.Left, least: r.p.keeping(t)}
		if t.Fixed {
			return b
		}
	}
	for _, c := range r.undominated(t) {
		w := &t.Candidates[c.place]
		b.rest = append(b.rest, option{candidate: c.place, group: w.Group, end: r.place(w.Seconds), devices: float64(w.Devices),
			seconds: w.Seconds, least: c.key, slope: r.p.urgency(t, w.Seconds)})
	}
	return b
}

// place returns the index of the last time of the grid that is not after s.
func (r *relaxed) place(s float64) int {
	at, found := slices.BinarySearch(r.times, s)
	if found {
		return at
	}
	return at - 1
}

// undominated lists the candidates of t by their cost if they start now. It leaves out a candidate if a cheaper one of the
// same group is at least as good in every respect.
func (r *relaxed) undominated(t *Task) []ranked {
	all := r.ranked[:0]
	for i := range t.Candidates {
		all = append(all, ranked{r.p.least(t, &t.Candidates[i]), i})
	}
	r.ranked = all
	slices.SortFunc(all, ranked.compare)
	for g := range r.kept {
		r.kept[g] = r.kept[g][:0]
	}
	return slices.DeleteFunc(all, func(c ranked) bool {
		w := &t.Candidates[c.place]
		kept := &r.kept[w.Group]
		if slices.ContainsFunc(*kept, func(o *Candidate) bool { return o.covers(w) }) {
			return true
		}
		*kept = append(*kept, w)
		return false
	})
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
		if b.rest[k].least >= best.cost {
			break
		}
		r.consider(i, &b.rest[k], &best)
	}
	if r.picks[i] = best; best.option == nil {
		return false
	}
	r.count(best.group, best.start, best.end, best.devices)
	return true
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
	start, from, to, last := 0.0, 0, b.end, len(sums)-1
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
func (r *relaxed) count(g int, from, to, devices float64) {
	at, _ := slices.BinarySearch(r.times, from)
	for i := max(at-1, 0); i+1 < len(r.times) && r.times[i] < to; i++ {
		if overlap := min(to, r.times[i+1]) - max(from, r.times[i]); overlap > 0 {
			r.use[g][i] += devices * overlap
		}
	}
}
