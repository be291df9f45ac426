package lookahead

import (
	"context"
	"slices"
)

// gridTimes is how many intervals of constant price there are at most.
const gridTimes = 12

// forgets is how much of the mean of ends goes with every round.
const forgets = 0.1

// many is how many tasks random changes alone get somewhere with: one of more is rarely a change for the better. With
// fewer the plans that prices suggest cost less as well, but in whole runs, in which other jobs come, completion times
// were the same or 1 to 6 % longer.
const many = 100

// guide looks for a bound on the cost of every plan in so many rounds and, where there are many tasks, for plans on the
// way: at each round's prices every task has a way and an end that is best for it, and tasks that would end early, on
// the mean of rounds, go first. It returns the bound, -Inf without rounds, and the prices that prove it.
func (s *search) guide(ctx context.Context, rounds int, known Prices) (float64, Prices) {
	if rounds == 0 || s.cost == inf {
		return -inf, Prices{}
	}
	if len(s.p.Tasks) == 0 {
		return s.cost, Prices{}
	}
	if len(s.free) <= many { // rounds cost little, and those from no prices at all prove somewhat more
		known = Prices{}
	}
	a := newAscent(newRelaxed(s.p, s.grid()), known)
	mean, weight := make([]float64, len(s.p.Tasks)), 0.0
	for range rounds {
		more := a.round(s.cost)
		weight = weight*(1-forgets) + 1
		for i := range mean {
			mean[i] += (a.picks[i].end - mean[i]) / weight
		}
		if len(s.free) > many {
			s.suggest(a.picks, mean)
			s.try()
		}
		s.f.steps += a.steps
		a.steps = 0
		if !more || s.exhausted(ctx) {
			break
		}
	}
	if most := s.f.steps + s.f.steps/4; len(s.free) > many && (s.limit == 0 || s.limit > most) {
		s.limit = most // a quarter as much again for random changes, which find little then
	}
	return a.best, a.found
}

// grid returns times between which about as many tasks end in the best plan, the present first, and the end of all
// last.
func (s *search) grid() []float64 {
	var ends []float64
	for _, c := range s.plan().Assignments {
		if c.End < inf {
			ends = append(ends, c.End)
		}
	}
	slices.Sort(ends)
	times := []float64{0}
	for i := 1; i <= gridTimes && len(ends) > 0; i++ {
		if t := ends[(i*len(ends)-1)/gridTimes]; t > times[len(times)-1] {
			times = append(times, t)
		}
	}
	return times
}

// suggest makes next the plan in which every task has its pick, and those with the least key go first.
func (s *search) suggest(picks []pick, key []float64) {
	for _, i := range s.free {
		s.next.strict[i] = false
		b := picks[i].bid
		if s.next.keep[i] = b != nil && b.way == keeps; b != nil && b.way >= 0 {
			s.next.way[i] = b.way
		}
	}
	s.sortOrder(func(i int) float64 { return key[i] })
}
