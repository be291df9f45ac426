package lp

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// choiceSolver solves a Choice.
type choiceSolver struct {
	groups   int
	capacity []float64
	start    []int32 // options of group g are start[g] to start[g+1]
	id       []int32 // index of each option in its group
	value    []float64
	usePtr   []int32 // uses of option i are usePtr[i] to usePtr[i+1]
	useOf    []int32
	use      []float64
	runEnd   []int32 // option i to runEnd[i]-1 take more and more of one resource each, and nothing else; i+1 if it takes several
	hullPtr  []int32 // hull options of group g are hull[hullPtr[g]] to hull[hullPtr[g+1]-1]
	hull     []int32 // options that are best at some prices, ascending

	prices []float64 // prices with the lowest bound
	bound  float64
	mix    *mixture
	points [][]float64 // prices by point of mix; nil = no option is picked

	best      []int32 // best answer: option by group, -1 for none
	bestValue float64
	nodes     int
}

func newChoiceSolver(c *Choice) *choiceSolver {
	s := &choiceSolver{groups: len(c.Groups), capacity: c.Capacity, bound: math.Inf(1), start: []int32{0}, usePtr: []int32{0}, hullPtr: []int32{0}}
	total := 0
	for _, options := range c.Groups {
		total += len(options)
	}
	s.id, s.value, s.usePtr, s.runEnd = slices.Grow(s.id, total), slices.Grow(s.value, total), slices.Grow(s.usePtr, total), slices.Grow(s.runEnd, total)
	s.useOf, s.use = slices.Grow(s.useOf, total), slices.Grow(s.use, total)
	for _, options := range c.Groups {
		for _, o := range c.worthwhile(options) {
			s.id = append(s.id, int32(o))
			s.value = append(s.value, options[o].Value)
			for _, u := range options[o].Uses {
				if u.Amount > 0 {
					s.useOf = append(s.useOf, int32(u.Resource))
					s.use = append(s.use, u.Amount)
				}
			}
			s.usePtr = append(s.usePtr, int32(len(s.use)))
		}
		s.start = append(s.start, int32(len(s.id)))
		s.addHull(int32(len(s.id)))
	}
	s.best = slices.Repeat([]int32{-1}, s.groups)
	return s
}

// addHull sets runEnd and hull for the options of the last group, up to end.
func (s *choiceSolver) addHull(end int32) {
	for i := s.start[len(s.start)-2]; i < end; {
		last := i + 1
		for s.single(i) && last < end && s.single(last) && s.more(last-1, last) {
			last++
		}
		first := len(s.hull)
		for ; i < last; i++ {
			for n := len(s.hull); n-first >= 2 && s.below(s.hull[n-2], s.hull[n-1], i); n-- {
				s.hull = s.hull[:n-1]
			}
			s.runEnd, s.hull = append(s.runEnd, last), append(s.hull, i)
		}
	}
	s.hullPtr = append(s.hullPtr, int32(len(s.hull)))
}

// single reports whether option i takes one resource only.
func (s *choiceSolver) single(i int32) bool { return s.usePtr[i+1]-s.usePtr[i] == 1 }

// more reports whether option b takes more of the resource that option a takes.
func (s *choiceSolver) more(a, b int32) bool {
	x, y := s.usePtr[a], s.usePtr[b]
	return s.useOf[x] == s.useOf[y] && s.use[x] < s.use[y]
}

// below reports whether b lies below the line from a to c, by more than rounding: it is best at no price. All take
// the same resource, in ascending amounts.
func (s *choiceSolver) below(a, b, c int32) bool {
	x, y, z := s.use[s.usePtr[a]], s.use[s.usePtr[b]], s.use[s.usePtr[c]]
	line := s.value[a] + (s.value[c]-s.value[a])*(y-x)/(z-x)
	return line-s.value[b] > 1e-9*math.Abs(line)
}

// worthwhile returns the options with a positive value that fit alone and are not dominated. It orders them by
// resource and amount.
func (c *Choice) worthwhile(options []Option) []int {
	var keep []int
	for o, opt := range options {
		fits := opt.Value > 0
		for _, u := range opt.Uses {
			fits = fits && u.Amount <= c.Capacity[u.Resource]
		}
		if fits {
			keep = append(keep, o)
		}
	}
	slices.SortFunc(keep, func(a, b int) int {
		x, y := options[a], options[b]
		if d := cmp.Compare(len(x.Uses), len(y.Uses)); d != 0 || len(x.Uses) != 1 {
			return cmp.Or(d, cmp.Compare(a, b))
		}
		return cmp.Or(cmp.Compare(x.Uses[0].Resource, y.Uses[0].Resource), cmp.Compare(x.Uses[0].Amount, y.Uses[0].Amount), cmp.Compare(y.Value, x.Value), cmp.Compare(a, b))
	})
	out := keep[:0]
	for _, o := range keep {
		if n := len(out); n > 0 && beats(options[out[n-1]], options[o]) {
			continue
		}
		out = append(out, o)
	}
	return out
}

// beats reports whether a dominates b: both take only the same resource, a takes no more and is worth no less.
func beats(a, b Option) bool {
	return len(a.Uses) == 1 && len(b.Uses) == 1 && a.Uses[0].Resource == b.Uses[0].Resource && a.Uses[0].Amount <= b.Uses[0].Amount && a.Value >= b.Value
}

// reduced returns the value of option i minus the cost of its resources at prices p.
func (s *choiceSolver) reduced(i int32, p []float64) float64 {
	v := s.value[i]
	for q := s.usePtr[i]; q < s.usePtr[i+1]; q++ {
		v -= p[s.useOf[q]] * s.use[q]
	}
	return v
}

// take adds sign times the resources of option i to use.
func (s *choiceSolver) take(use []float64, i int32, sign float64) {
	if i < 0 {
		return
	}
	for q := s.usePtr[i]; q < s.usePtr[i+1]; q++ {
		use[s.useOf[q]] += sign * s.use[q]
	}
}

// bestAt returns the option of group g with the highest reduced value at prices p, and that value; -1 if none is
// positive.
func (s *choiceSolver) bestAt(g int, p []float64) (int32, float64) {
	best, at := 0.0, int32(-1)
	for _, i := range s.hull[s.hullPtr[g]:s.hullPtr[g+1]] {
		if v := s.reduced(i, p); v > best {
			best, at = v, i
		}
	}
	return at, best
}

const (
	choiceRounds = 300  // limit of rounds of column generation, of one or two points
	choiceGap    = 1e-9 // gap of the relaxation that ends column generation
)

// relax finds the prices with the lowest bound. It rounds the mixture when the bound is a quarter as far from its value
// as at the last time, until an answer is within the gap.
func (s *choiceSolver) relax(ctx context.Context, o ChoiceOptions) {
	none := make([]float64, len(s.capacity))
	for k, n := range s.capacity {
		if n > 0 {
			none[k] = -1
		}
	}
	s.mix, s.points = newMixture(0, none), [][]float64{nil}
	s.evaluate(make([]float64, len(s.capacity)))
	if o.Prices != nil {
		s.evaluateAround(o.Prices)
	}
	rounded := math.Inf(1)
	for n := 0; n < choiceRounds && ctx.Err() == nil && s.mix.solve(); n++ {
		off := s.bound - s.mix.price[len(s.capacity)]
		best := off <= choiceGap*math.Abs(s.bound)
		if best || off <= rounded/4 {
			rounded = off
			s.round()
		}
		if s.withinGap(o.Gap) {
			return
		}
		if best {
			break
		}
		next, full := make([]float64, len(s.capacity)), make([]float64, len(s.capacity))
		for k, n := range s.capacity {
			if n > 0 {
				full[k] = math.Max(0, s.mix.price[k]) / n
			}
			next[k] = (full[k] + s.prices[k]) / 2
		}
		bound := s.bound
		s.evaluate(next)
		if s.bound >= bound {
			s.evaluate(full)
		}
	}
	for t, w := range s.mix.weights() { // each of them is near the bound, too
		if p := s.points[t]; w > 0 && p != nil {
			pick, use, _, _ := s.choose(p)
			s.repair(pick, use, p)
		}
	}
	pick, use, _, _ := s.choose(s.prices)
	s.repair(pick, use, s.prices)
}

// evaluateAround evaluates prices p, and p with each resource 10 % cheaper and dearer, so that the mixture has points
// on all sides of p.
func (s *choiceSolver) evaluateAround(p []float64) {
	s.evaluate(slices.Clone(p))
	for k := range p {
		for _, f := range []float64{0.9, 1.1} {
			q := slices.Clone(p)
			q[k] *= f
			s.evaluate(q)
		}
	}
}

// choose returns the best options of all groups at prices p, their use and value, and the sum of their reduced values.
func (s *choiceSolver) choose(p []float64) (pick []int32, use []float64, value, reduced float64) {
	pick, use = make([]int32, s.groups), make([]float64, len(s.capacity))
	for g := range s.groups {
		i, worth := s.bestAt(g, p)
		if pick[g] = i; i >= 0 {
			value += s.value[i]
			reduced += worth
			s.take(use, i, 1)
		}
	}
	return pick, use, value, reduced
}

// evaluate adds the best options at prices p as a point of the mixture, and keeps the bound if it is lower.
func (s *choiceSolver) evaluate(p []float64) {
	_, use, value, bound := s.choose(p)
	row := make([]float64, len(s.capacity))
	for k, n := range s.capacity {
		bound += p[k] * n
		if n > 0 {
			row[k] = (use[k] - n) / n
		}
	}
	s.mix.add(value, row)
	s.points = append(s.points, p)
	if bound < s.bound {
		s.bound, s.prices = bound, p
	}
}

// record keeps pick if it is the best answer so far.
func (s *choiceSolver) record(pick []int32) {
	value := 0.0
	for _, i := range pick {
		if i >= 0 {
			value += s.value[i]
		}
	}
	if value > s.bestValue {
		s.bestValue = value
		copy(s.best, pick)
	}
}

// withinGap reports whether bound and best answer are within the gap, or within rounding.
func (s *choiceSolver) withinGap(gap float64) bool {
	return s.bound-s.bestValue <= math.Max(gap, 1e-12)*math.Abs(s.bound)
}

func (s *choiceSolver) solution() *Chosen {
	c := &Chosen{Pick: make([]int, s.groups), Value: s.bestValue, Bound: math.Max(s.bound, s.bestValue), Prices: s.prices, Points: len(s.mix.t), Nodes: s.nodes}
	for g, i := range s.best {
		c.Pick[g] = -1
		if i >= 0 {
			c.Pick[g] = int(s.id[i])
		}
	}
	return c
}
