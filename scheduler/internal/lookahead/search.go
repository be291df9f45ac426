package lookahead

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// Options say how a Problem is searched.
type Options struct {
	Tries int    // random changes in vain after which it ends
	Steps int    // of work, some nanoseconds each, after which it ends too; 0 = no limit
	Seed  uint64 // of the changes
	// Rounds is how often prices are moved at the most to prove a bound and, with many tasks, to find better plans to
	// change: a few dozen come near what can be proven. 0 = none, and no bound.
	Rounds int
	Prices Prices // near which those are taken to be that prove most
	Hint   Hint   // a plan to start from besides the simple ones
}

// Hint is what is known of a good plan.
type Hint struct {
	Order []int    // tasks; those that are not there come last
	Ways  []Intent // of those
}

// Intent is what a plan says of a task that is started.
type Intent struct {
	Way    int // -1 = any
	Strict bool
}

// Search returns the best plan it finds. It is a function of p and o; the error is
// that of ctx.
func Search(ctx context.Context, p *Problem, o Options) (Plan, error) {
	s := newSearch(p, o)
	s.simple()
	s.follow(o.Hint)
	bound, prices := s.guide(ctx, o.Rounds, o.Prices)
	for again := 0; again == 0 || again < anneals && len(s.late) > 0; again++ {
		s.anneal(ctx, o.Tries)
	}
	s.improve(ctx, o.Tries)
	plan := s.plan()
	plan.Bound, plan.Prices = bound, prices
	return plan, ctx.Err()
}

func newSearch(p *Problem, o Options) *search {
	return &search{f: newForward(p), p: p, cost: inf, rng: rand.New(rand.NewPCG(o.Seed, 0x6c6f6f6b)), limit: o.Steps}
}

type search struct {
	f     *forward
	p     *Problem
	best  schedule // the best so far, or while annealing the last
	cost  float64  // of best
	next  schedule
	rng   *rand.Rand
	limit int
	free  []int // tasks that may be started: those with ways that need not keep what they hold
	runs  []int // those of them that hold devices
	late  []int // those of them that end late in the best plan

	holders [][]int  // of runs, by node; made when first asked for
	ranked  []ranked // scratch of sortOrder
}

// prices are how much more a device-second is taken to cost than it does where
// the ways of the simple plans are chosen.
var prices = [...]float64{0, 0.25, 0.5, 1, 2, 4, 8, 16}

// simple tries all plans in which who runs is kept, each of the others runs in
// the way that is cheapest at some price, and the order is by what is gained per
// device, by time, or as given.
func (s *search) simple() {
	n := len(s.p.Tasks)
	s.next = schedule{way: make([]int, n), keep: make([]bool, n), strict: make([]bool, n)}
	for i := range s.p.Tasks {
		t := &s.p.Tasks[i]
		s.next.keep[i] = len(t.Held) > 0
		s.next.way[i] = -1
		if len(t.Ways) > 0 && !(t.Fixed && s.next.keep[i]) {
			s.free = append(s.free, i)
			if s.next.keep[i] {
				s.runs = append(s.runs, i)
			}
		}
	}
	ways := s.cheapest()
	for k := range prices {
		for j, i := range s.free {
			s.next.way[i] = ways[j][k]
		}
		for _, key := range []func(int) float64{s.byArea, s.byTime, s.bySlack, nil} {
			if key == nil {
				s.next.order = append(s.next.order[:0], s.free...)
			} else {
				s.sortOrder(key)
			}
			s.try()
		}
	}
}

// cheapest returns the way of each task that may be started whose time and device-seconds cost least, at every price.
func (s *search) cheapest() [][len(prices)]int {
	best := make([][len(prices)]int, len(s.free))
	for j, i := range s.free {
		t := &s.p.Tasks[i]
		var least [len(prices)]float64
		for k := range least {
			least[k] = inf
		}
		for n := range t.Ways {
			w := &t.Ways[n]
			time, area := w.Seconds*s.p.urgency(t, w.Seconds), w.area()
			for k, price := range prices {
				if c := time + area*(price*s.p.Price); c < least[k] {
					least[k], best[j][k] = c, n
				}
			}
		}
	}
	return best
}

// ranked is a place in a list with what it is sorted by.
type ranked struct {
	key   float64
	place int
}

func (a ranked) compare(b ranked) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.place, b.place))
}

// sortOrder sorts the tasks to be started by key, equal ones as they are listed.
func (s *search) sortOrder(key func(task int) float64) {
	s.ranked = s.ranked[:0]
	for _, i := range s.free { // ascending
		s.ranked = append(s.ranked, ranked{key(i), i})
	}
	slices.SortFunc(s.ranked, ranked.compare)
	s.next.order = s.next.order[:0]
	for _, c := range s.ranked {
		s.next.order = append(s.next.order, c.place)
	}
}

func (s *search) byArea(i int) float64 {
	t := &s.p.Tasks[i]
	w := &t.Ways[s.next.way[i]]
	return w.area() / s.p.urgency(t, w.Seconds)
}

func (s *search) byTime(i int) float64 {
	t := &s.p.Tasks[i]
	w := &t.Ways[s.next.way[i]]
	return w.Seconds / s.p.urgency(t, w.Seconds)
}

// bySlack is how long a task can wait and still be on time.
func (s *search) bySlack(i int) float64 {
	if by := s.p.Tasks[i].Ways[s.next.way[i]].By; len(by) > 0 {
		return by[0]
	}
	return inf
}

// try keeps next if it is no worse than the best, and reports whether it is
// better.
func (s *search) try() bool {
	before := s.cost
	return s.accept(before) && s.cost < before-1e-9*math.Abs(before)
}

// accept makes next the best if it costs limit at the most, and reports whether it does.
func (s *search) accept(limit float64) bool {
	c := s.f.run(&s.next, limit)
	if c > limit || c == inf {
		return false
	}
	s.cost = c
	s.best.set(&s.next)
	s.findLate()
	return true
}

// findLate notes who is late in the plan that was run last and can be helped.
func (s *search) findLate() {
	s.late = s.late[:0]
	for _, i := range s.best.order {
		t := &s.p.Tasks[i]
		if t.Late == 0 {
			continue
		}
		late := t.Tardy
		if !s.best.keep[i] {
			late = t.Ways[s.best.way[i]].late(s.f.started[i])
		}
		if late > instant && late > t.leastLate()+instant {
			s.late = append(s.late, i)
		}
	}
}

// follow tries the plan of h.
func (s *search) follow(h Hint) {
	if len(h.Order) == 0 || s.cost == inf {
		return
	}
	s.next.set(&s.best)
	rank := make([]int, len(s.p.Tasks))
	for i := range rank {
		rank[i] = len(h.Order)
	}
	for r, i := range h.Order {
		rank[i] = r
		if s.next.way[i] >= 0 && h.Ways[r].Way >= 0 {
			s.next.way[i], s.next.strict[i] = h.Ways[r].Way, h.Ways[r].Strict
		}
	}
	slices.SortStableFunc(s.next.order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	s.try()
}

// improve makes random changes to the best plan until so many in a row were in
// vain.
func (s *search) improve(ctx context.Context, tries int) {
	if len(s.free) == 0 || s.cost == inf {
		return
	}
	for vain := 0; vain < tries; vain++ {
		if s.exhausted(ctx) {
			return
		}
		s.next.set(&s.best)
		if s.change() && s.try() {
			vain = 0
		}
	}
}

// exhausted reports whether the search has to end now.
func (s *search) exhausted(ctx context.Context) bool {
	return s.limit > 0 && s.f.steps > s.limit || ctx.Err() != nil
}

// change changes next at random, and reports whether that may matter.
func (s *search) change() bool {
	switch {
	case len(s.late) > 0 && s.rng.IntN(4) == 0:
		s.hurry(s.late[s.rng.IntN(len(s.late))])
		return true
	case len(s.runs) > 0 && s.rng.IntN(4) == 0:
		s.turn(s.runs[s.rng.IntN(len(s.runs))])
		return true
	}
	n := &s.next
	at := s.rng.IntN(len(n.order))
	task := n.order[at]
	if n.keep[task] {
		return false
	}
	switch k := s.rng.IntN(10); {
	case k < 4:
		return s.otherWay(task)
	case k < 6:
		toFront(n.order, at, 0)
		return at > 0
	case k < 7:
		toFront(n.order, at, s.rng.IntN(at+1))
		return true
	case k < 9:
		to := s.rng.IntN(len(n.order))
		n.order[at], n.order[to] = n.order[to], n.order[at]
		return to != at
	}
	n.strict[task] = !n.strict[task]
	return true
}

// turn has a task that runs started anew, or kept after all.
func (s *search) turn(task int) {
	s.next.keep[task] = !s.next.keep[task]
	if s.next.keep[task] {
		return
	}
	s.otherWay(task)
	if s.rng.IntN(2) == 0 {
		toFront(s.next.order, slices.Index(s.next.order, task), 0)
	}
}

// hurry puts a task that is late first, in a way that is in time if there is one,
// and may make room for it.
func (s *search) hurry(task int) {
	s.next.keep[task] = false
	toFront(s.next.order, slices.Index(s.next.order, task), 0)
	if !s.punctual(task) {
		s.otherWay(task)
	}
	if len(s.runs) > 0 && s.rng.IntN(4) > 0 {
		s.clear(&s.p.Tasks[task].Ways[s.next.way[task]])
	}
}

// punctual gives a task a way in which it is no later than it must be if it starts
// at once, at random, and reports whether there is one.
func (s *search) punctual(task int) bool {
	t, found := &s.p.Tasks[task], 0
	least := t.leastLate()
	for w := range t.Ways {
		if t.Ways[w].late(0) <= least+instant {
			if found++; s.rng.IntN(found) == 0 {
				s.next.way[task] = w
			}
		}
	}
	return found > 0
}

// instant is too little to be late by, in seconds: what rounding may do.
const instant = 1e-3

// clear makes room for w on nodes at random: who holds devices there is started
// anew, those first that need not be in time.
func (s *search) clear(w *Way) {
	nodes := s.f.base
	var chosen []int
	for _, count := range w.Counts {
		for range tries {
			node := s.rng.IntN(len(s.p.Nodes))
			if nodes.group[node] == w.Group && s.p.Nodes[node].Devices >= count && !slices.Contains(chosen, node) {
				s.vacate(node, count)
				chosen = append(chosen, node)
				break
			}
		}
	}
}

// tries is how often clear looks for a node, which fails only where few will do.
const tries = 16

// vacate starts anew who holds devices of a node until so many are free.
func (s *search) vacate(node, count int) {
	free := s.f.base.free[node]
	for _, i := range s.held(node) {
		if !s.next.keep[i] {
			free += s.on(i, node)
		}
	}
	for _, guaranteed := range []bool{false, true} {
		for _, i := range s.held(node) {
			if free >= count {
				return
			}
			if s.next.keep[i] && (s.p.Tasks[i].Late > 0) == guaranteed {
				s.next.keep[i] = false
				free += s.on(i, node)
			}
		}
	}
}

// held returns who of those that may be started anew holds devices of a node.
func (s *search) held(node int) []int {
	if s.holders == nil {
		s.holders = make([][]int, len(s.p.Nodes))
		for _, i := range s.runs {
			for _, h := range s.p.Tasks[i].Held {
				s.holders[h.Node] = append(s.holders[h.Node], i)
			}
		}
	}
	return s.holders[node]
}

// on returns how many devices of a node a task holds.
func (s *search) on(task, node int) (n int) {
	for _, h := range s.p.Tasks[task].Held {
		if h.Node == node {
			n += h.Devices
		}
	}
	return n
}

// otherWay gives a task a way at random, most often one next to its present one.
func (s *search) otherWay(task int) bool {
	ways := len(s.p.Tasks[task].Ways)
	old := s.next.way[task]
	to := s.rng.IntN(ways)
	if s.rng.IntN(2) == 0 {
		to = min(max(old+s.rng.IntN(5)-2, 0), ways-1)
	}
	s.next.way[task] = to
	return to != old
}

// toFront moves what is at from to the place to before it.
func toFront(order []int, from, to int) {
	k := order[from]
	copy(order[to+1:from+1], order[to:from])
	order[to] = k
}

// plan returns the best plan.
func (s *search) plan() Plan {
	out := Plan{Cost: s.cost, Choices: make([]Choice, len(s.p.Tasks)), Steps: s.f.steps}
	if s.cost == inf {
		for i := range out.Choices {
			t := &s.p.Tasks[i]
			out.Choices[i] = Choice{Keep: len(t.Held) > 0, Way: -1, End: inf}
		}
		return out
	}
	s.f.run(&s.best, inf)
	out.Strict = s.best.strict
	for i := range s.p.Tasks {
		t := &s.p.Tasks[i]
		switch {
		case s.best.keep[i]:
			out.Choices[i] = Choice{Keep: true, Way: -1, End: t.Left, Slots: t.Held}
		case s.best.way[i] < 0:
			out.Choices[i] = Choice{Way: -1, End: inf}
		default:
			w := s.best.way[i]
			out.Choices[i] = Choice{Way: w, Start: s.f.started[i], End: s.f.started[i] + t.Ways[w].Seconds, Slots: s.f.slots[i]}
		}
	}
	for _, i := range s.best.order {
		if !s.best.keep[i] {
			out.Order = append(out.Order, i)
		}
	}
	return out
}
