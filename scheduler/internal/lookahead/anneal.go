package lookahead

import (
	"context"
	"math"
)

// Parameters of annealing, chosen on Rubick's trace mt with seeds that no test uses.
const (
	perTry     = 10   // bounds the changes per try of Options
	perTask    = 40   // bounds the changes per task that may be started
	hot        = 1e-3 // first temperature, as a part of scale
	cooled     = 0.01 // last temperature, as a part of the first
	maxAnneals = 4    // most passes; another pass is made only if a task is avoidably late
)

// anneal makes random changes and accepts worse proposals too: one that costs c more with probability exp(-c/T). The
// temperature T falls by equal factors (Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing", 1983).
// Afterwards best is the cheapest proposal found. Annealing helps late tasks, which often need two changes: another task
// has to yield its devices first.
func (s *search) anneal(ctx context.Context, tries int) {
	if len(s.free) == 0 || len(s.free) > pricedMin || s.cost == inf {
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

// scale is the sum over tasks that may be started of urgency times earliest end, the unit of temperatures.
func (s *search) scale() (sum float64) {
	for _, i := range s.free {
		t := &s.p.Tasks[i]
		sum += s.p.Urgency(t) * t.soonest()
	}
	return sum
}
