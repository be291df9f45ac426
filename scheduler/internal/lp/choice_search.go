package lp

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// core is the undecided rest of a Choice. Its prices give the lowest bound. An option with a reduced value below its
// group's best by more than the gap is in no better answer. A group with one option left is decided. The search is
// depth first: groups with the largest second regret first, options with the least regret first. The bound minus the
// regrets so far bounds every answer below a node.
type core struct {
	*choiceSolver
	groups []openGroup // by depth
	pick   []int32
	free   []float64   // resources left
	worth  float64     // value of pick, up to rounding
	least  [][]float64 // by depth and resource, the least that this and later groups can take
	limit  int
	gap    float64
	open   float64 // highest bound of the parts that were not searched
}

// openGroup is an undecided group: its options, least regret first.
type openGroup struct {
	id      int
	options []regret
}

// regret is an option, -1 for none, and its reduced value below the best of its group.
type regret struct {
	option int32
	loss   float64
}

// search looks for a better answer in the core within limit nodes, and lowers the bound to what it proves.
func (s *choiceSolver) search(ctx context.Context, limit int, gap float64) {
	c := s.newCore(limit, gap)
	c.open = math.Inf(-1)
	if c.dive(ctx, 0, 0) {
		s.bound = s.bestValue
		return
	}
	s.bound = math.Max(s.bestValue, math.Min(s.bound, c.open))
}

// newCore drops the options that no better answer contains.
func (s *choiceSolver) newCore(limit int, gap float64) *core {
	c := &core{choiceSolver: s, pick: make([]int32, s.groups), free: slices.Clone(s.capacity), limit: limit, gap: gap}
	slack := s.bound - s.bestValue
	for g := range s.groups {
		list := s.regrets(g, slack)
		if len(list) == 1 {
			c.decide(g, list[0].option)
			continue
		}
		c.groups = append(c.groups, openGroup{g, list})
	}
	slices.SortStableFunc(c.groups, func(a, b openGroup) int { return cmp.Compare(b.options[1].loss, a.options[1].loss) })
	c.needs()
	return c
}

// regrets returns the options of group g with a regret of at most slack, least regret first.
func (s *choiceSolver) regrets(g int, slack float64) []regret {
	_, worth := s.bestAt(g, s.prices)
	var list []regret
	if worth <= slack {
		list = append(list, regret{-1, worth})
	}
	for i := s.start[g]; i < s.start[g+1]; i++ {
		if loss := worth - s.reduced(i, s.prices); loss <= slack {
			list = append(list, regret{i, math.Max(0, loss)})
		}
	}
	slices.SortStableFunc(list, func(a, b regret) int { return cmp.Compare(a.loss, b.loss) })
	return list
}

// needs sums the least use of the groups from each depth on.
func (c *core) needs() {
	c.least = make([][]float64, len(c.groups)+1)
	c.least[len(c.groups)] = make([]float64, len(c.capacity))
	for d := len(c.groups) - 1; d >= 0; d-- {
		c.least[d] = slices.Clone(c.least[d+1])
		for k := range c.capacity {
			least := math.Inf(1)
			for _, r := range c.groups[d].options {
				amount := 0.0
				if r.option >= 0 {
					amount = c.amount(r.option, k)
				}
				least = math.Min(least, amount)
			}
			c.least[d][k] += least
		}
	}
}

// dive decides the groups from depth d on; lost is the regret so far. It returns false if it skipped a part that may
// hold a better answer.
func (c *core) dive(ctx context.Context, d int, lost float64) (complete bool) {
	bound := c.bound - lost
	if bound-c.bestValue <= math.Max(c.gap, 1e-12)*math.Abs(bound) { // relative to this bound, as in Chosen.Gap
		if bound > c.bestValue {
			c.open = math.Max(c.open, bound)
			return c.gap == 0
		}
		return true
	}
	for k, n := range c.least[d] {
		if n > c.free[k]+1e-12*math.Max(1, c.capacity[k]) {
			return true
		}
	}
	if c.nodes >= c.limit || c.nodes%1024 == 1023 && ctx.Err() != nil {
		c.limit = 0
		c.open = math.Max(c.open, bound)
		return false
	}
	c.nodes++
	if d == len(c.groups) {
		if c.worth > c.bestValue-1e-9*math.Abs(c.bestValue) { // otherwise the exact sum is lower, too
			c.record(c.pick)
		}
		return true
	}
	complete = true
	g := c.groups[d].id
	for _, r := range c.groups[d].options {
		if c.bound-lost-r.loss <= c.bestValue {
			break
		}
		worth := c.worth
		c.decide(g, r.option)
		if !c.dive(ctx, d+1, lost+r.loss) {
			complete = false
		}
		c.take(c.free, r.option, 1)
		c.worth = worth
	}
	return complete
}

// decide picks an option of group g, -1 for none.
func (c *core) decide(g int, option int32) {
	c.pick[g] = option
	c.take(c.free, option, -1)
	if option >= 0 {
		c.worth += c.value[option]
	}
}
