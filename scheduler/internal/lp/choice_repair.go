package lp

import (
	"cmp"
	"math"
	"slices"
)

// round makes a feasible answer from the mixture, which keeps all capacities on average. Each group takes one of its
// options in points with a weight, those with the largest options first, such that the use so far remains near that of
// the mixture. At the best prices all these options are worth the same minus the cost of their resources, so the answer
// loses only what repair changes.
func (s *choiceSolver) round() {
	var picks [][]int32 // of points with a weight
	var weights []float64
	for t, w := range s.mix.weights() {
		if w == 0 {
			continue
		}
		pick := slices.Repeat([]int32{-1}, s.groups)
		if p := s.points[t]; p != nil {
			pick, _, _, _ = s.choose(p)
		}
		picks, weights = append(picks, pick), append(weights, w)
	}
	pick, use, mean := picks[0], make([]float64, len(s.capacity)), make([]float64, len(s.capacity))
	type mixed struct {
		group int
		most  float64 // share of a capacity
	}
	var split []mixed
	for g, first := range pick {
		m := mixed{g, 0}
		for _, other := range picks[1:] {
			if other[g] != first {
				m.most = max(m.most, s.mostShare(first), s.mostShare(other[g]))
			}
		}
		if m.most > 0 {
			split = append(split, m)
			continue
		}
		s.take(use, first, 1)
		s.take(mean, first, 1)
	}
	slices.SortStableFunc(split, func(a, b mixed) int { return cmp.Compare(b.most, a.most) })
	for _, m := range split {
		for t, w := range weights {
			s.take(mean, picks[t][m.group], w)
		}
		best, least := int32(-1), math.Inf(1)
		for t := range picks {
			i := picks[t][m.group]
			s.take(use, i, 1)
			if off := s.distance(use, mean); off < least {
				least, best = off, i
			}
			s.take(use, i, -1)
		}
		s.take(use, best, 1)
		pick[m.group] = best
	}
	s.repair(pick, use, s.prices)
}

// mostShare returns the largest share of a capacity that option i takes.
func (s *choiceSolver) mostShare(i int32) (most float64) {
	if i < 0 {
		return 0
	}
	for q := s.usePtr[i]; q < s.usePtr[i+1]; q++ {
		most = math.Max(most, s.use[q]/s.capacity[s.useOf[q]])
	}
	return most
}

// distance returns the sum of squared differences of two uses, in shares of the capacities.
func (s *choiceSolver) distance(a, b []float64) (sum float64) {
	for k, n := range s.capacity {
		if n > 0 {
			d := (a[k] - b[k]) / n
			sum += d * d
		}
	}
	return sum
}

// repair makes a feasible answer from the best options at prices p and their use, and changes both. While a resource
// exceeds its capacity it applies the changes with the least loss per unit freed. Then it adds the changes with the
// largest gains that fit.
func (s *choiceSolver) repair(pick []int32, use, p []float64) {
	for {
		k := s.mostExceeded(use)
		if k < 0 {
			break
		}
		half := (use[k] - s.capacity[k]) / 2
		for _, c := range s.repairMoves(pick, use, p, k) {
			if s.fits(use, k) || use[k]-s.capacity[k] < half {
				break // the cheapest change depends on the amount left to free
			}
			if s.roomFor(use, pick[c.group], c.option, k) {
				s.apply(c, pick, use)
			}
		}
	}
	s.fill(pick, use)
	s.record(pick)
}

// change replaces the option of a group; -1 for none.
type change struct {
	group  int
	option int32
	cost   float64 // lower is better
}

func (s *choiceSolver) apply(c change, pick []int32, use []float64) {
	s.take(use, pick[c.group], -1)
	s.take(use, c.option, 1)
	pick[c.group] = c.option
}

// fits reports whether the use of resource k is within its capacity.
func (s *choiceSolver) fits(use []float64, k int) bool {
	return use[k]-s.capacity[k] <= 1e-12*math.Max(1, s.capacity[k])
}

// mostExceeded returns the resource with the largest relative excess, -1 if all are within capacity.
func (s *choiceSolver) mostExceeded(use []float64) int {
	at, most := -1, 0.0
	for k, n := range s.capacity {
		if over := (use[k] - n) / math.Max(1, n); !s.fits(use, k) && over > most {
			at, most = k, over
		}
	}
	return at
}

// repairMoves returns one change for each group that uses resource k, cheapest first. It is the change with the least
// loss per unit freed that exceeds no other capacity. All are computed in one pass: a pass per change would take
// quadratic time.
func (s *choiceSolver) repairMoves(pick []int32, use, p []float64, k int) (out []change) {
	over := use[k] - s.capacity[k]
	for g, now := range pick {
		if now < 0 {
			continue
		}
		had := s.amount(now, k)
		if had == 0 {
			continue
		}
		worth := s.reduced(now, p)
		best := change{g, -1, worth / min(had, over)}
		for i := s.start[g]; i < s.start[g+1]; i++ {
			freed := had - s.amount(i, k)
			if freed <= 0 {
				continue
			}
			if cost := (worth - s.reduced(i, p)) / min(freed, over); cost < best.cost && s.roomFor(use, now, i, k) {
				best.option, best.cost = i, cost
			}
		}
		out = append(out, best)
	}
	cheapestFirst(out)
	return out
}

// cheapestFirst sorts changes by cost, equal ones by group.
func cheapestFirst(changes []change) {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.group, b.group)) })
}

// amount returns how much of resource k option i takes.
func (s *choiceSolver) amount(i int32, k int) float64 {
	for q := s.usePtr[i]; q < s.usePtr[i+1]; q++ {
		if int(s.useOf[q]) == k {
			return s.use[q]
		}
	}
	return 0
}

// roomFor reports whether option i, -1 for none, fits once option now is released. It ignores resource skip.
func (s *choiceSolver) roomFor(use []float64, now, i int32, skip int) bool {
	if i < 0 {
		return true
	}
	for q := s.usePtr[i]; q < s.usePtr[i+1]; q++ {
		k := int(s.useOf[q])
		if k == skip {
			continue
		}
		after := use[k] + s.use[q]
		if now >= 0 {
			after -= s.amount(now, k)
		}
		if after > s.capacity[k]*(1+1e-12) {
			return false
		}
	}
	return true
}

// fill applies the changes with the largest gains, down to 90 % of the largest, until no change gains.
func (s *choiceSolver) fill(pick []int32, use []float64) {
	for {
		gains := s.gains(pick, use)
		if len(gains) == 0 {
			return
		}
		for _, c := range gains {
			if c.cost > gains[0].cost*0.9 {
				break
			}
			if s.roomFor(use, pick[c.group], c.option, -1) {
				s.apply(c, pick, use)
			}
		}
	}
}

// gains returns for each group the change with the largest gain that fits, largest first.
func (s *choiceSolver) gains(pick []int32, use []float64) (out []change) {
	for g, now := range pick {
		best, had := change{g, -1, 0}, 0.0
		if now >= 0 {
			had = s.value[now]
		}
		for i := s.start[g]; i < s.start[g+1]; i++ {
			if cost := had - s.value[i]; cost < best.cost {
				if !s.roomFor(use, now, i, -1) {
					i = s.runEnd[i] - 1 // the others of the run take more
					continue
				}
				best.option, best.cost = i, cost
			}
		}
		if best.option >= 0 {
			out = append(out, best)
		}
	}
	cheapestFirst(out)
	return out
}
