package lookahead

import "slices"

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
	tolls   [][]toll    // by group and time: prices, as bound takes them
	lambda  []float64   // by task
	bids    []bids      // by task
	picks   []pick      // by task, what is best at these prices
	use     [][]float64 // by group and interval, device-seconds of the picks
	until   int         // M, as a place in the grid
	steps   int         // of work

	ranked []ranked       // scratch of undominated
	kept   [][]*Candidate // and by group
}

// toll is what a device costs up to a time of the grid, and from then on a second.
type toll struct{ at, paid, price float64 }

// bids are the ways of a task, and what of them does not change with prices.
type bids struct {
	held *bid  // what it holds, nil if it may not keep that
	ways []bid // that no other is better than whatever the prices are, those that cost least first
}

// bid is a way of a task, or what it holds.
type bid struct {
	way              int // or keeps
	group            int
	end              int // the last time of the grid before its end if it starts at once
	devices, seconds float64
	least            float64 // what it costs then
	slope            float64 // what each second later costs more at the least
}

// pick is how a task runs; the zero pick is of a task that is left out.
type pick struct {
	*bid
	start, end float64
	cost       float64 // with what it pays
}

// keeps is the way of a task that keeps what it holds.
const keeps = -1

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
		r.tolls = append(r.tolls, make([]toll, len(times)))
	}
	for i := range p.Tasks {
		r.bids = append(r.bids, r.bidsOf(&p.Tasks[i]))
	}
	return r
}

func (r *relaxed) bidsOf(t *Task) (b bids) {
	if len(t.Held) > 0 {
		b.held = &bid{way: keeps, group: r.p.Nodes[t.Held[0].Node].Group, end: r.place(t.Left), devices: float64(devices(t.Held)),
			seconds: t.Left, least: r.p.keeping(t)}
		if t.Fixed {
			return b
		}
	}
	for _, c := range r.undominated(t) {
		w := &t.Candidates[c.place]
		b.ways = append(b.ways, bid{way: c.place, group: w.Group, end: r.place(w.Seconds), devices: float64(w.Devices),
			seconds: w.Seconds, least: c.key, slope: r.p.urgency(t, w.Seconds)})
	}
	return b
}

// place returns the last time of the grid that is not after s, as a place in it.
func (r *relaxed) place(s float64) int {
	at, found := slices.BinarySearch(r.times, s)
	if found {
		return at
	}
	return at - 1
}

// undominated lists the ways of t by what they cost if they start at once, but those that another of the same group is
// as good as in everything, which costs no more.
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

// covers reports whether w costs no more than o whenever both start at the same time.
func (w *Candidate) covers(o *Candidate) bool {
	return w.Group == o.Group && w.Devices <= o.Devices && w.Seconds <= o.Seconds && w.Idle <= o.Idle && w.asPatient(o)
}

// asPatient reports whether w need not start before o in any case.
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
			r.tolls[g][i] = toll{at, paid, price[i]}
			paid += price[i] * (r.times[i+1] - at)
		}
		r.tolls[g][len(price)] = toll{at: r.times[len(price)], paid: paid}
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
			c -= n * r.tolls[g][i].paid
		}
		if c < least {
			least, r.until = c, i
		}
	}
	return least
}

// choose finds what is best for task i; false if it is left out.
func (r *relaxed) choose(i int) bool {
	was, best := r.picks[i].bid, pick{cost: inf}
	b := &r.bids[i]
	if h := b.held; h != nil {
		best = pick{bid: h, end: h.seconds, cost: h.least + r.lambda[i]*h.seconds + h.devices*r.tolls[h.group][h.end].upTo(h.seconds)}
	}
	if was != nil && was.way >= 0 { // most likely still the best, so that the others are soon out
		r.consider(i, was, &best)
	}
	for k := range b.ways {
		if b.ways[k].least >= best.cost {
			break
		}
		r.consider(i, &b.ways[k], &best)
	}
	if r.picks[i] = best; best.bid == nil {
		return false
	}
	r.count(best.group, best.start, best.end, best.devices)
	return true
}

// upTo returns what a device costs up to s, which is not before the time of the toll, nor after the next.
func (t *toll) upTo(s float64) float64 { return t.paid + t.price*(s-t.at) }

// consider looks for a start of task i in way b that is better than best. What a task costs grows with its start, by
// its urgency and λ a second at least, and what it pays is linear between the starts at which it begins or ends at a
// time of the grid: between two of them it costs no less than at the first plus so much a second.
func (r *relaxed) consider(i int, b *bid, best *pick) {
	lambda, tolls := r.lambda[i], r.tolls[b.group]
	base, slope := b.least+lambda*b.seconds, b.slope+lambda
	if c := base + b.devices*tolls[b.end].upTo(b.seconds); c < best.cost {
		*best = pick{b, 0, b.seconds, c}
	}
	start, from, to, last := 0.0, 0, b.end, len(tolls)-1
	for from < last && base+slope*start < best.cost {
		r.steps++
		next := tolls[from+1].at // the next start, at a time of the grid or for an end at one
		if to < last && tolls[to+1].at-b.seconds < next {
			to++
			next = max(start, tolls[to].at-b.seconds)
		} else {
			from++
		}
		pays := b.devices * (tolls[to].upTo(next+b.seconds) - tolls[from].upTo(next))
		if base+slope*next+pays < best.cost { // which is no more than what it comes to
			t := &r.p.Tasks[i]
			c := r.p.starting(t, &t.Candidates[b.way], start) + lambda*(start+b.seconds) + slope*(next-start) + pays
			if c < best.cost {
				*best = pick{b, next, next + b.seconds, c}
			}
		}
		start = next
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
