package lookahead

import (
	"context"
	"math"
)

// Parameters of annealing, chosen on generated workloads (training seeds of pacer bench scheduling).
const (
	perTry    = 10   // bounds the changes per try of Options in one pass
	perTask   = 40   // bounds them per task that may be started
	hot       = 1e-3 // first temperature, as a part of scale
	cooled    = 0.01 // last temperature, as a part of the first
	passes    = 3
	maxPasses = 12 // if a task is avoidably late
)

// anneal makes random changes and accepts worse proposals too: one that costs c more with probability exp(-c/T). The
// temperature T falls by equal factors (Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing", 1983).
// Annealing helps late tasks, which often need two changes: another task has to yield its devices first. Each pass begins
// anew, since a pass may end in a proposal that no single change improves. Afterwards best is the cheapest proposal found.
func (s *search) anneal(ctx context.Context, tries int) {
	if len(s.free) == 0 || len(s.free) > pricedMin || s.cost == inf {
		return
	}
	var start, least proposal
	start.set(&s.best)
	least.set(&s.best)
	cost := s.cost
	few, most := passes, maxPasses
	if s.rough {
		few, most = 1, 1
	}
	for pass := 0; pass < few || pass < most && len(s.late) > 0; pass++ {
		if pass > 0 && s.exhausted(ctx) {
			break
		}
		s.next.set(&start)
		s.accept(inf)
		if s.annealOnce(ctx, tries); s.cost < cost {
			least.set(&s.best)
			cost = s.cost
		}
		s.next.set(&least)
		s.accept(inf)
	}
}

// annealOnce is one pass of anneal, from the best proposal.
func (s *search) annealOnce(ctx context.Context, tries int) {
	var least proposal
	least.set(&s.best)
	cost := s.cost
	changes := min(perTry*tries, perTask*len(s.free))
	temperature, cooling := hot*s.scale(), math.Pow(cooled, 1/float64(changes))
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
