package lookahead

import (
	"context"
	"slices"
)

// gridTimes bounds the intervals of constant price.
const gridTimes = 12

// endDecay is the weight that the mean end of a task loses per round.
const endDecay = 0.1

// pricedMin is the number of tasks above which the search tries proposals from prices, since random changes rarely improve
// so many. With fewer tasks these proposals cost less too, but in whole simulations, in which more jobs arrive, completion
// times were the same or 1 to 6 % longer.
const pricedMin = 100

// knownRounds bounds the rounds from known prices with more than manyTasks tasks. The prices go on improving in later
// decisions.
const knownRounds = 4

// guide runs up to rounds rounds of the ascent for a bound on the cost of every schedule. With more than pricedMin tasks
// it tries a proposal in each round: every task has its best candidate at the round's prices, and the order is by the
// mean over rounds of each task's best end. It returns the bound, -Inf without rounds, and the prices that prove it.
func (s *search) guide(ctx context.Context, rounds int, known Prices) (float64, Prices) {
	if rounds == 0 || s.cost == inf {
		return -inf, Prices{}
	}
	if len(s.p.Tasks) == 0 {
		return s.cost, Prices{}
	}
	if len(s.free) <= pricedMin { // rounds are cheap here, and a cold start gives a slightly better bound
		known = Prices{}
	}
	a := newAscent(newRelaxed(s.p, s.grid(), s.memory), known)
	if a.known && len(s.free) > manyTasks {
		rounds = min(rounds, knownRounds)
	}
	mean, weight := make([]float64, len(s.p.Tasks)), 0.0
	for range rounds {
		more := a.round(s.cost)
		weight = weight*(1-endDecay) + 1
		for i := range mean {
			mean[i] += (a.picks[i].end - mean[i]) / weight
		}
		if len(s.free) > pricedMin {
			s.suggest(a.picks, mean)
			s.try()
		}
		s.f.steps += a.steps
		a.steps = 0
		if !more || s.exhausted(ctx) {
			break
		}
	}
	if most := 3 * s.f.steps; len(s.free) > pricedMin && (s.limit == 0 || s.limit > most) {
		s.limit = most // random changes improve little here: allow twice as many steps again
	}
	return a.best, a.found
}

// grid returns ascending times from 0 to the end of the best schedule, with about the same number of ends between any two.
func (s *search) grid() []float64 {
	s.f.run(&s.best, inf)
	var ends []float64
	for i := range s.p.Tasks {
		t := &s.p.Tasks[i]
		switch w := s.best.candidate[i]; {
		case s.best.keep[i]:
			ends = append(ends, t.Left)
		case w >= 0:
			ends = append(ends, s.f.started[i]+t.Candidates[w].Seconds)
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

// suggest makes next the proposal in which every task has its pick, ordered by key, least first.
func (s *search) suggest(picks []pick, key []float64) {
	for _, i := range s.free {
		s.next.strict[i] = false
		b := picks[i].option
		if s.next.keep[i] = b != nil && b.candidate == keepHeld; b != nil && b.candidate >= 0 {
			s.next.candidate[i] = int(b.candidate)
		}
	}
	s.sortOrder(func(i int) float64 { return key[i] })
}
