package lookahead

import (
	"context"
	"math"
)

// What annealing does, as chosen on Rubick's trace mt with other seeds than any test uses.
const (
	perTry  = 10   // most changes, per non-improving try that ends the search
	perTask = 40   // changes at the most, per task that may be started
	hot     = 1e-3 // the temperature at first, as a part of what tasks cost by the time they take at the least
	cooled  = 0.01 // what is left of it at the end
	anneals = 4    // most passes, as long as an avoidably late task is left
)

// anneal makes random changes, as many as tries and tasks are worth, and goes on from a worse plan too: at temperature T
// from one that costs c more with probability exp(-c/T), T falling by equal factors (Kirkpatrick, Gelatt and Vecchi,
// "Optimization by simulated annealing", 1983). It ends at the best plan met. Who is late is seldom helped by one
// change alone: another has to make room first.
func (s *search) anneal(ctx context.Context, tries int) {
	if len(s.free) == 0 || len(s.free) > many || s.cost == inf {
		return
	}
	changes := min(perTry*tries, perTask*len(s.free))
	temperature := hot * s.scale()
	cooling := math.Pow(cooled, 1/float64(changes))
	var least proposal
	least.set(&s.best)
	cost := s.cost
	for range changes {
		if s.exhausted(ctx) {
			break
		}
		s.next.set(&s.best)
		if s.change() && s.accept(s.cost+temperature*s.rng.ExpFloat64()) && s.cost < cost {
			least.set(&s.best)
			cost = s.cost
		}
		temperature *= cooling
	}
	s.next.set(&least)
	s.accept(inf)
}

// scale is what those that may be started cost by the time they take at the least, from a second that each ends later.
func (s *search) scale() (sum float64) {
	for _, i := range s.free {
		t := &s.p.Tasks[i]
		sum += s.p.Urgency(t) * t.soonest()
	}
	return sum
}
