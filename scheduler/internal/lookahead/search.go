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
	Tries int    // non-improving random changes after which it ends
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
	Order      []int    // tasks; those that are not there come last
	Candidates []Intent // of those
}

// Intent is what a plan says of a task that is started.
type Intent struct {
	Candidate int // -1 = any
	Strict    bool
}

// Search returns the best plan it finds. It is a function of p and o; the error is
// that of ctx.
func Search(ctx context.Context, p *Problem, o Options) (Schedule, error) {
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
	return &search{f: newRollout(p), p: p, cost: inf, rng: rand.New(rand.NewPCG(o.Seed, 0x6c6f6f6b)), limit: o.Steps}
}

type search struct {
	f     *rollout
	p     *Problem
	best  proposal // the best so far, or while annealing the last
	cost  float64  // of best
	next  proposal
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
	s.next = proposal{way: make([]int, n), keep: make([]bool, n), strict: make([]bool, n)}
	for i := range s.p.Tasks {
		t := &s.p.Tasks[i]
		s.next.keep[i] = len(t.Held) > 0
		s.next.way[i] = -1
		if len(t.Candidates) > 0 && !(t.Fixed && s.next.keep[i]) {
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
		for n := range t.Candidates {
			w := &t.Candidates[n]
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
	w := &t.Candidates[s.next.way[i]]
	return w.area() / s.p.urgency(t, w.Seconds)
}

func (s *search) byTime(i int) float64 {
	t := &s.p.Tasks[i]
	w := &t.Candidates[s.next.way[i]]
	return w.Seconds / s.p.urgency(t, w.Seconds)
}

// bySlack is how long a task can wait and still be on time.
func (s *search) bySlack(i int) float64 {
	if by := s.p.Tasks[i].Candidates[s.next.way[i]].By; len(by) > 0 {
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

// findLate collects the avoidably late tasks of the last rollout.
func (s *search) findLate() {
	s.late = s.late[:0]
	for _, i := range s.best.order {
		t := &s.p.Tasks[i]
		if t.Late == 0 {
			continue
		}
		late := t.Tardy
		if !s.best.keep[i] {
			late = t.Candidates[s.best.way[i]].late(s.f.started[i])
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
		if s.next.way[i] >= 0 && h.Candidates[r].Candidate >= 0 {
			s.next.way[i], s.next.strict[i] = h.Candidates[r].Candidate, h.Candidates[r].Strict
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

// plan returns the best plan.
func (s *search) plan() Schedule {
	out := Schedule{Cost: s.cost, Assignments: make([]Assignment, len(s.p.Tasks)), Steps: s.f.steps}
	if s.cost == inf {
		for i := range out.Assignments {
			t := &s.p.Tasks[i]
			out.Assignments[i] = Assignment{Keep: len(t.Held) > 0, Candidate: -1, End: inf}
		}
		return out
	}
	s.f.run(&s.best, inf)
	out.Strict = s.best.strict
	for i := range s.p.Tasks {
		t := &s.p.Tasks[i]
		switch {
		case s.best.keep[i]:
			out.Assignments[i] = Assignment{Keep: true, Candidate: -1, End: t.Left, Slots: t.Held}
		case s.best.way[i] < 0:
			out.Assignments[i] = Assignment{Candidate: -1, End: inf}
		default:
			w := s.best.way[i]
			out.Assignments[i] = Assignment{Candidate: w, Start: s.f.started[i], End: s.f.started[i] + t.Candidates[w].Seconds, Slots: s.f.slots[i]}
		}
	}
	for _, i := range s.best.order {
		if !s.best.keep[i] {
			out.Order = append(out.Order, i)
		}
	}
	return out
}
