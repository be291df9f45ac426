package lp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Choice picks at most one option for each of many groups, for the highest value that limited resources allow:
//
//	maximise    Σ_g Σ_o v_go x_go
//	subject to  Σ_o x_go <= 1              by group
//	            Σ_g Σ_o u_gok x_go <= N_k  by resource
//	            x in {0, 1}
//
// the multiple-choice multi-dimensional knapsack problem (Kellerer, Pferschy and Pisinger, Knapsack Problems, Springer
// 2004, chapters 9 and 11). With prices p on resources the groups fall apart, and
//
//	L(p) = p'N + Σ_g max(0, max_o v_go - p'u_go)
//
// is a bound on the value for any p >= 0; the least is that of the linear relaxation (Geoffrion, Lagrangean relaxation
// for integer programming, Mathematical Programming Study 2, 1974), in which only about as many groups as there are
// resources are split. [Choice.Solve] finds those prices by column generation, rounds what they lead to, drops options
// that the two prove can be in no better answer, and searches what is left.
type Choice struct {
	Groups   [][]Option
	Capacity []float64 // N, by resource, >= 0
}

// Option is one way to serve a group.
type Option struct {
	Value float64 // what it is worth; never picked below zero
	Uses  []Use   // each resource once at most
}

// Use is how much an option takes of a resource.
type Use struct {
	Resource int
	Amount   float64 // >= 0
}

// ChoiceOptions say when to stop. The zero value proves the optimum, or ends after 200,000 nodes.
type ChoiceOptions struct {
	Gap      float64   // stop when the bound is within this part of it from the value
	MaxNodes int       // nodes of the search at most; zero is 200,000, negative none
	Prices   []float64 // of a similar problem, by resource, to begin with; nil begins with none
}

// Chosen is the best answer found and the bound that holds for all.
type Chosen struct {
	Pick  []int   // option by group, -1 for none
	Value float64 // of the picks
	Bound float64 // no answer is worth more
	// Prices are those that prove the bound of the relaxation, by resource: about what one more of it is worth.
	Prices []float64
	Points int // price vectors tried
	Nodes  int // of the search
}

// Gap returns how far Value may be below the optimum, as a part of the bound.
func (c *Chosen) Gap() float64 {
	if c.Bound <= c.Value {
		return 0
	}
	return (c.Bound - c.Value) / math.Abs(c.Bound)
}

// Validate reports what is wrong with the problem, by group and option.
func (c *Choice) Validate() error {
	for k, n := range c.Capacity {
		if !finite(n) || n < 0 {
			return fmt.Errorf("lp: %w: resource %d has the capacity %g", ErrInvalid, k, n)
		}
	}
	for g, options := range c.Groups {
		for o, opt := range options {
			if !finite(opt.Value) {
				return fmt.Errorf("lp: %w: option %d of group %d has the value %g", ErrInvalid, o, g, opt.Value)
			}
			for _, u := range opt.Uses {
				if u.Resource < 0 || u.Resource >= len(c.Capacity) || !finite(u.Amount) || u.Amount < 0 {
					return fmt.Errorf("lp: %w: option %d of group %d uses %g of resource %d of %d", ErrInvalid, o, g, u.Amount, u.Resource, len(c.Capacity))
				}
			}
		}
	}
	return nil
}

// validatePrices reports what is wrong with prices to begin with.
func (c *Choice) validatePrices(p []float64) error {
	if len(p) != len(c.Capacity) {
		return fmt.Errorf("lp: %w: %d prices for %d resources", ErrInvalid, len(p), len(c.Capacity))
	}
	for k, v := range p {
		if !finite(v) || v < 0 {
			return fmt.Errorf("lp: %w: the price %g of resource %d", ErrInvalid, v, k)
		}
	}
	return nil
}

// Solve returns the best answer it finds, always feasible, with a proven bound. When ctx ends it returns what it has
// then; that is no error. It fails with [ErrInvalid].
func (c *Choice) Solve(ctx context.Context, o ChoiceOptions) (*Chosen, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if o.Prices != nil {
		if err := c.validatePrices(o.Prices); err != nil {
			return nil, err
		}
	}
	s := newChoosing(c)
	s.relax(ctx, o)
	if !s.closed(o.Gap) && o.MaxNodes >= 0 {
		s.search(ctx, cmp.Or(o.MaxNodes, 200_000), o.Gap)
	}
	return s.chosen(), nil
}

// choosing solves a Choice.
type choosing struct {
	groups   int
	capacity []float64
	start    []int32 // options of group g are start[g] to start[g+1]
	id       []int32 // of each option, in its group
	value    []float64
	usePtr   []int32 // uses of option i are usePtr[i] to usePtr[i+1]
	useOf    []int32
	use      []float64

	prices []float64 // those of the least bound
	bound  float64
	mix    *mixture

	best      []int32 // option by group of the best answer, -1 for none
	bestValue float64
	nodes     int
}

func newChoosing(c *Choice) *choosing {
	s := &choosing{groups: len(c.Groups), capacity: c.Capacity, bound: math.Inf(1), start: []int32{0}, usePtr: []int32{0}}
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
	}
	s.best = make([]int32, s.groups)
	for g := range s.best {
		s.best[g] = -1
	}
	return s
}

// worthwhile returns the options that are worth something, fit alone, and are not beaten by one that takes no more of
// the same single resource; in order of resource and amount.
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

// beats reports whether a is worth as much as b and both take one and the same resource, of which a takes no more.
func beats(a, b Option) bool {
	return len(a.Uses) == 1 && len(b.Uses) == 1 && a.Uses[0].Resource == b.Uses[0].Resource && a.Uses[0].Amount <= b.Uses[0].Amount && a.Value >= b.Value
}

// reduced returns the value of option i less what it uses at prices p.
func (s *choosing) reduced(i int32, p []float64) float64 {
	v := s.value[i]
	for q := s.usePtr[i]; q < s.usePtr[i+1]; q++ {
		v -= p[s.useOf[q]] * s.use[q]
	}
	return v
}

// take adds sign times what option i uses to use.
func (s *choosing) take(use []float64, i int32, sign float64) {
	if i < 0 {
		return
	}
	for q := s.usePtr[i]; q < s.usePtr[i+1]; q++ {
		use[s.useOf[q]] += sign * s.use[q]
	}
}

// favourite returns the option of group g that is worth most at prices p, -1 if none is worth anything, and its worth.
func (s *choosing) favourite(g int, p []float64) (int32, float64) {
	best, at := 0.0, int32(-1)
	for i := s.start[g]; i < s.start[g+1]; i++ {
		if v := s.reduced(i, p); v > best {
			best, at = v, i
		}
	}
	return at, best
}

const (
	choicePoints = 300  // price vectors tried at most
	choiceGap    = 1e-9 // gap of the relaxation at which trying ends
)

// relax finds prices of the least bound, and answers on the way.
func (s *choosing) relax(ctx context.Context, o ChoiceOptions) {
	none := make([]float64, len(s.capacity))
	for k, n := range s.capacity {
		if n > 0 {
			none[k] = -1
		}
	}
	s.mix = newMixture(0, none)
	s.try(make([]float64, len(s.capacity)))
	if o.Prices != nil {
		s.around(o.Prices)
	}
	for range choicePoints {
		if ctx.Err() != nil || !s.mix.solve() {
			return
		}
		lower := s.mix.price[len(s.capacity)]
		if s.bound-lower <= choiceGap*math.Abs(s.bound) {
			break
		}
		if s.closed(o.Gap) {
			return
		}
		next, full := make([]float64, len(s.capacity)), make([]float64, len(s.capacity))
		for k, n := range s.capacity {
			if n > 0 {
				full[k] = math.Max(0, s.mix.price[k]) / n
			}
			next[k] = (full[k] + s.prices[k]) / 2
		}
		bound := s.bound
		s.try(next)
		if s.bound >= bound {
			s.try(full)
		}
	}
	s.repair(s.prices)
}

// around tries prices and, for each resource, a little more and a little less of it, so that the mixture knows what
// lies on all sides of them.
func (s *choosing) around(p []float64) {
	s.try(slices.Clone(p))
	for k := range p {
		for _, f := range []float64{0.9, 1.1} {
			q := slices.Clone(p)
			q[k] *= f
			s.try(q)
		}
	}
}

// try takes what each group likes best at prices p as a point of the mixture, and the bound they prove.
func (s *choosing) try(p []float64) {
	use := make([]float64, len(s.capacity))
	value, bound := 0.0, 0.0
	for g := range s.groups {
		i, worth := s.favourite(g, p)
		if i >= 0 {
			value += s.value[i]
			bound += worth
			s.take(use, i, 1)
		}
	}
	row := make([]float64, len(s.capacity))
	for k, n := range s.capacity {
		bound += p[k] * n
		if n > 0 {
			row[k] = (use[k] - n) / n
		}
	}
	s.mix.add(value, row)
	if bound < s.bound {
		s.bound, s.prices = bound, p
	}
	if s.mixSize()%8 == 0 { // prices on the way lead to answers too
		s.repair(p)
	}
}

func (s *choosing) mixSize() int { return len(s.mix.t) }

// repair makes an answer from what the groups like best at prices p: as long as a resource is short it makes the
// change that loses least for what it frees, then it takes what gains most of what still fits.
func (s *choosing) repair(p []float64) {
	pick := make([]int32, s.groups)
	use := make([]float64, len(s.capacity))
	for g := range pick {
		pick[g], _ = s.favourite(g, p)
		s.take(use, pick[g], 1)
	}
	for {
		k := s.shortest(use)
		if k < 0 {
			break
		}
		half := (use[k] - s.capacity[k]) / 2
		for _, c := range s.waysOut(pick, use, p, k) {
			if s.fits(use, k) || use[k]-s.capacity[k] < half {
				break // what is cheapest now depends on what is left to free
			}
			if s.roomFor(use, pick[c.group], c.option, k) {
				s.carryOut(c, pick, use)
			}
		}
	}
	s.fill(pick, use)
	s.offer(pick)
}

// change is another option for a group, -1 for none.
type change struct {
	group  int
	option int32
	cost   float64 // the less the better
}

func (s *choosing) carryOut(c change, pick []int32, use []float64) {
	s.take(use, pick[c.group], -1)
	s.take(use, c.option, 1)
	pick[c.group] = c.option
}

// fits reports whether resource k is not short.
func (s *choosing) fits(use []float64, k int) bool {
	return use[k]-s.capacity[k] <= 1e-12*math.Max(1, s.capacity[k])
}

// shortest returns the resource that is short by the largest part, -1 if none is.
func (s *choosing) shortest(use []float64) int {
	at, most := -1, 0.0
	for k, n := range s.capacity {
		if over := (use[k] - n) / math.Max(1, n); !s.fits(use, k) && over > most {
			at, most = k, over
		}
	}
	return at
}

// waysOut returns of each group that takes some of resource k the option, or none, that frees some of it at the least
// loss for each unit it frees of what is short, and makes no other resource short: the cheapest first. All are found at
// once, since to look again after each would cost as much as there are options, as often as there are changes.
func (s *choosing) waysOut(pick []int32, use, p []float64, k int) (out []change) {
	over := use[k] - s.capacity[k]
	for g, now := range pick {
		if now < 0 || s.amount(now, k) == 0 {
			continue
		}
		worth := s.reduced(now, p)
		best := change{g, -1, worth / math.Min(s.amount(now, k), over)}
		for i := s.start[g]; i < s.start[g+1]; i++ {
			freed := s.amount(now, k) - s.amount(i, k)
			if freed <= 0 {
				continue
			}
			if cost := (worth - s.reduced(i, p)) / math.Min(freed, over); cost < best.cost && s.roomFor(use, now, i, k) {
				best.option, best.cost = i, cost
			}
		}
		out = append(out, best)
	}
	slices.SortStableFunc(out, func(a, b change) int { return cmp.Compare(a.cost, b.cost) })
	return out
}

// amount returns how much option i takes of resource k.
func (s *choosing) amount(i int32, k int) float64 {
	for q := s.usePtr[i]; q < s.usePtr[i+1]; q++ {
		if int(s.useOf[q]) == k {
			return s.use[q]
		}
	}
	return 0
}

// roomFor reports whether resources other than skip have room for option i, -1 for none, once option now is given
// back.
func (s *choosing) roomFor(use []float64, now, i int32, skip int) bool {
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

// fill changes to what gains most, by group, the largest gain first and those within a tenth of it with it, as long as any
// gains.
func (s *choosing) fill(pick []int32, use []float64) {
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
				s.carryOut(c, pick, use)
			}
		}
	}
}

// gains returns of each group the option that gains most and fits, the largest gain first.
func (s *choosing) gains(pick []int32, use []float64) (out []change) {
	for g, now := range pick {
		best, had := change{g, -1, 0}, 0.0
		if now >= 0 {
			had = s.value[now]
		}
		for i := s.start[g]; i < s.start[g+1]; i++ {
			if cost := had - s.value[i]; cost < best.cost && s.roomFor(use, now, i, -1) {
				best.option, best.cost = i, cost
			}
		}
		if best.option >= 0 {
			out = append(out, best)
		}
	}
	slices.SortStableFunc(out, func(a, b change) int { return cmp.Compare(a.cost, b.cost) })
	return out
}

// offer keeps pick if it is the best so far.
func (s *choosing) offer(pick []int32) {
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

// closed reports whether bound and best answer are within the gap, or within rounding.
func (s *choosing) closed(gap float64) bool {
	return s.bound-s.bestValue <= math.Max(gap, 1e-12)*math.Abs(s.bound)
}

func (s *choosing) chosen() *Chosen {
	c := &Chosen{Pick: make([]int, s.groups), Value: s.bestValue, Bound: math.Max(s.bound, s.bestValue), Prices: s.prices, Points: s.mixSize(), Nodes: s.nodes}
	for g, i := range s.best {
		c.Pick[g] = -1
		if i >= 0 {
			c.Pick[g] = int(s.id[i])
		}
	}
	return c
}
