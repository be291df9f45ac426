package lookahead

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// Options bound the search of a Problem.
type Options struct {
	Tries int    // the search ends after so many random changes without improvement
	Steps int    // the search ends after so many steps, of some nanoseconds each; 0 = no limit
	Seed  uint64 // seed of the random changes
	// Rough is for tasks with guessed ends: one pass of annealing, and random candidates from all. A better schedule of
	// guesses is no better, see docs/design/joint-scheduling.md.
	Rough bool
	// Rounds bounds the rounds in which prices are improved to prove a bound and, with many tasks, to find better
	// proposals. A few dozen come near the best bound. 0 = no prices, and no bound.
	Rounds int
	Prices Prices // where to start the search for the best prices
	// Hint is a proposal to try besides the simple ones; with more than manyTasks tasks that may be started, in place of them.
	Hint   Hint
	Memory *Memory // of earlier searches, to be used again; nil = new
}

// Memory is what searches use one after the other, so that large ones need not allocate it.
type Memory struct {
	options []option
}

// Hint is a proposal for some tasks.
type Hint struct {
	Order      []int    // tasks; missing ones come last, with more than manyTasks where they come by area
	Candidates []Intent // one for each of Order
}

// Intent is the part of a Hint for one task.
type Intent struct {
	Candidate int // -1 = any
	Strict    bool
}

// Search returns the best schedule it finds. The result depends on p and o only, and
// does not refer to them, except for Held. If ctx ends, Search returns the best
// schedule so far with its error. It does not change p.
func Search(ctx context.Context, p *Problem, o Options) (Schedule, error) {
	s := newSearch(p, o)
	if !s.resume(o.Hint) {
		s.trySimple()
		s.tryHint(o.Hint)
	}
	bound, prices := s.guide(ctx, o.Rounds, o.Prices)
	s.anneal(ctx, o.Tries)
	s.improve(ctx, o.Tries)
	plan := s.plan()
	plan.Bound, plan.Prices = bound, prices
	return plan, ctx.Err()
}

func newSearch(p *Problem, o Options) *search {
	p = p.prepare()
	memory := o.Memory
	if memory == nil {
		memory = &Memory{}
	}
	s := &search{f: newRollout(p), p: p, memory: memory, cost: inf, rng: rand.New(rand.NewPCG(o.Seed, 0x6c6f6f6b)), limit: o.Steps, rough: o.Rough}
	n := len(p.Tasks)
	s.next = proposal{candidate: make([]int, n), keep: make([]bool, n), strict: make([]bool, n)}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		s.next.keep[i] = len(t.Held) > 0
		s.next.candidate[i] = -1
		if len(t.Candidates) > 0 && !(t.Fixed && s.next.keep[i]) {
			s.free = append(s.free, i)
			if s.next.keep[i] {
				s.runs = append(s.runs, i)
			}
		}
	}
	s.unit = s.priceUnit()
	return s
}

type search struct {
	f      *rollout
	p      *Problem
	memory *Memory
	best   proposal // the best so far; while annealing, the last accepted
	cost   float64  // cost of best
	next   proposal
	rng    *rand.Rand
	limit  int // steps, 0 = none
	rough  bool
	free   []int   // tasks that may be started: they have candidates and are not fixed
	runs   []int   // tasks of free that hold devices
	late   []int   // tasks of free that are avoidably late in best
	unit   float64 // see priceUnit

	efficient [][]int  // by task, see efficientOf
	holders   [][]int  // tasks of runs by node; nil until needed
	ranked    []ranked // the tasks of free as sortOrder ordered them last
}

// prices are multiples of priceUnit at which simple proposals choose candidates.
var prices = [...]float64{0, 0.25, 0.5, 1, 2, 4, 8, 16}

const unitPrice = 3 // index in prices of priceUnit itself

// trySimple tries all proposals that keep running tasks, give each other task the
// candidate that is cheapest at one of prices, and order tasks by area, time or slack,
// or as given; more than manyTasks only by area.
func (s *search) trySimple() {
	cheapest := make([][len(prices)]int, len(s.free))
	for j, i := range s.free {
		cheapest[j] = s.cheapest(i, anyGroup)
	}
	choose := func(k int) {
		for j, i := range s.free {
			s.next.candidate[i] = cheapest[j][k]
		}
	}
	if len(s.free) > manyTasks { // the rounds improve whichever is best
		for k := len(prices) - 1; k >= 0; k-- { // the largest candidates last: they take longest, if nothing better is known
			choose(k)
			s.sortOrder(s.byArea)
			s.accept(math.Nextafter(s.cost, -inf))
		}
		return
	}
	for k := range prices {
		choose(k)
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

const anyGroup = -1

// cheapest returns the candidate of a task in a group with the least cost of time and device-seconds at each of prices; -1
// without one.
func (s *search) cheapest(task, group int) (best [len(prices)]int) {
	t := &s.p.Tasks[task]
	var least [len(prices)]float64
	for k := range best {
		best[k] = -1
	}
	for n := range t.Candidates {
		w := &t.Candidates[n]
		if group != anyGroup && group != w.Group {
			continue
		}
		time, area := w.Seconds*s.p.urgency(t, w.Seconds), w.area()
		for k, price := range prices {
			if c := time + area*(price*s.unit); best[k] < 0 || c < least[k] {
				least[k], best[k] = c, n
			}
		}
	}
	return best
}

// priceUnit is Problem.Price. If that is 0 it is such that the largest of prices is what a device-second costs that delays
// all tasks that may be started.
func (s *search) priceUnit() float64 {
	if s.p.Price > 0 {
		return s.p.Price
	}
	urgency, devices := 0.0, 0
	for _, i := range s.free {
		urgency += s.p.Urgency(&s.p.Tasks[i])
	}
	for i := range s.p.Nodes {
		devices += s.p.Nodes[i].Devices
	}
	return urgency / float64(max(devices, 1)) / prices[len(prices)-1]
}

// ranked is an index in a list with its sort key.
type ranked struct {
	key   float64
	place int
}

func (a ranked) compare(b ranked) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return cmp.Compare(a.place, b.place)
}

// sortOrder orders the tasks that may be started by key, then index.
func (s *search) sortOrder(key func(task int) float64) {
	if len(s.ranked) == 0 {
		for _, i := range s.free {
			s.ranked = append(s.ranked, ranked{place: i})
		}
	}
	for k := range s.ranked { // most orders are like the last one, so that sorting that is fast
		s.ranked[k].key = key(s.ranked[k].place)
	}
	slices.SortFunc(s.ranked, ranked.compare)
	s.next.order = s.next.order[:0]
	for _, c := range s.ranked {
		s.next.order = append(s.next.order, c.place)
	}
}

func (s *search) byArea(i int) float64 {
	t := &s.p.Tasks[i]
	w := &t.Candidates[s.next.candidate[i]]
	return w.area() / s.p.urgency(t, w.Seconds)
}

func (s *search) byTime(i int) float64 {
	t := &s.p.Tasks[i]
	w := &t.Candidates[s.next.candidate[i]]
	return w.Seconds / s.p.urgency(t, w.Seconds)
}

// bySlack is the longest wait after which a task is still on time.
func (s *search) bySlack(i int) float64 {
	if by := s.p.Tasks[i].Candidates[s.next.candidate[i]].By; len(by) > 0 {
		return by[0]
	}
	return inf
}

// try accepts next if it is no worse than the best, and reports whether it is better.
func (s *search) try() bool {
	before := s.cost
	return s.accept(before) && s.cost < before-1e-9*math.Abs(before)
}

// accept makes next the best if it costs at most limit, and reports whether it does.
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
			late = t.Candidates[s.best.candidate[i]].late(s.f.started[i])
		}
		if late > onTime && late > t.leastLate()+onTime {
			s.late = append(s.late, i)
		}
	}
}

// resume tries the proposal of h with each other task where it comes by area, if there are so many tasks that simple
// proposals take longer than they are worth. It reports whether that is a schedule.
func (s *search) resume(h Hint) bool {
	if len(h.Order) == 0 || len(s.free) <= manyTasks {
		return false
	}
	entry := make([]int, len(s.p.Tasks)) // 1 + the index in h
	for r, i := range h.Order {
		entry[i] = r + 1
	}
	place := make([]float64, len(s.p.Tasks)) // in h
	var areas []float64
	for _, i := range s.free {
		if r := entry[i] - 1; r >= 0 && h.Candidates[r].Candidate >= 0 {
			s.next.candidate[i], s.next.strict[i] = h.Candidates[r].Candidate, h.Candidates[r].Strict
			areas = append(areas, s.byArea(i))
			place[i] = float64(r)
		}
	}
	slices.Sort(areas)
	for _, i := range s.free {
		if s.next.candidate[i] < 0 {
			s.next.candidate[i] = s.cheapest(i, anyGroup)[unitPrice]
			less, _ := slices.BinarySearch(areas, s.byArea(i))
			place[i] = float64(less)/float64(max(len(areas), 1))*float64(len(h.Order)) - 0.5
		}
	}
	s.sortOrder(s.byArea)
	slices.SortStableFunc(s.next.order, func(a, b int) int { return cmp.Compare(place[a], place[b]) })
	if s.accept(inf) {
		return true
	}
	clear(s.next.strict)
	return false
}

// tryHint tries the proposal of h, the other tasks last.
func (s *search) tryHint(h Hint) {
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
		if s.next.candidate[i] >= 0 && h.Candidates[r].Candidate >= 0 {
			s.next.candidate[i], s.next.strict[i] = h.Candidates[r].Candidate, h.Candidates[r].Strict
		}
	}
	slices.SortStableFunc(s.next.order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	s.try()
}

// manyTasks is the number of tasks that may be started above which a search resumes from the hint, has few rounds from known
// prices, and makes no random changes. Of these an eighth of what fewer tasks have lowered the gap of a first decision about
// 3100, 4000 and 5000 tasks on ten times as many devices by 0.01 to 0.04 percentage points, for a tenth more time.
const manyTasks = 3000

// improve makes random changes to the best proposal, until tries of them in a row bring
// no improvement.
func (s *search) improve(ctx context.Context, tries int) {
	if len(s.free) == 0 || len(s.free) > manyTasks || s.cost == inf {
		return
	}
	for failed := 0; failed < tries; failed++ {
		if s.exhausted(ctx) {
			return
		}
		s.next.set(&s.best)
		if s.change() && s.try() {
			failed = 0
		}
	}
}

// exhausted reports whether the search has to end.
func (s *search) exhausted(ctx context.Context) bool {
	return s.limit > 0 && s.f.steps > s.limit || ctx.Err() != nil
}

// plan returns the schedule of the best proposal.
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
		case s.best.candidate[i] < 0:
			out.Assignments[i] = Assignment{Candidate: -1, End: inf}
		default:
			w := s.best.candidate[i]
			out.Assignments[i] = Assignment{Candidate: w, Start: s.f.started[i], End: s.f.started[i] + t.Candidates[w].Seconds, Slots: s.f.slotsOf(i, &t.Candidates[w])}
		}
	}
	for _, i := range s.best.order {
		if !s.best.keep[i] {
			out.Order = append(out.Order, i)
		}
	}
	return out
}
