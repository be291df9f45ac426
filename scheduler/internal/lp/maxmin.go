package lp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
)

// MaxMin shares devices of a few types among many jobs so that the least satisfied is as well off as can be:
//
//	maximise t
//	subject to  Σ_k r_mk x_mk >= a_m + b_m t   what job m gets
//	            Σ_k x_mk <= 1                  its time
//	            Σ_m s_m x_mk <= N_k            the devices of type k
//	            x >= 0
//
// It is a linear programme whose dual has one price per type once the jobs are taken apart: at prices p the cheapest
// way to give m the rate g, C_m(p, g), follows the lower convex hull of (0, 0) and the points (r_mk, s_m p_k). With
// p'N = 1, no t is feasible at which Σ_m C_m(p, a_m + b_m t) > 1, so that
//
//	t* = min_p φ(p),  φ(p) the t at which the sum is 1.
//
// [MaxMin.Solve] finds that minimum by column generation (Dantzig and Wolfe, Decomposition principle for linear
// programs, Operations Research 8(1), 1960): every price vector tried yields a point, the best mixture of points so
// far is a feasible answer and its duals are the next prices. It ends when answer and bound meet. Jobs
// that are alike are priced once. With more than about twelve types the general solver is as fast.
type MaxMin struct {
	Rates    [][]float64 // r, by job and type, >= 0: what all of its time there would be worth
	Sizes    []float64   // s, by job, > 0: devices it holds while it runs
	Base     []float64   // a, by job; nil is all zero
	Slope    []float64   // b, by job, >= 0, one at least positive; nil is all one
	Capacity []float64   // N, by type, >= 0
}

// Shares are an optimum of a MaxMin.
type Shares struct {
	Level  float64     // t
	X      [][]float64 // share of its time, by job and type
	Prices []float64   // by type: by how much t would grow with one more device
	Gap    float64     // how far Level may be below the optimum, relative to max(1, |Level|)
	Points int         // price vectors tried
}

const (
	maxMinGap    = 1e-9 // gap at which looking for better prices ends
	maxMinAccept = 1e-8 // gap that is an answer when there are no better prices
	maxMinPoints = 2000 // price vectors tried at most
)

// Validate reports what is wrong with the problem, by job and type.
func (p *MaxMin) Validate() error {
	jobs := len(p.Rates)
	if len(p.Sizes) != jobs || p.Base != nil && len(p.Base) != jobs || p.Slope != nil && len(p.Slope) != jobs {
		return fmt.Errorf("lp: %w: %d jobs have %d sizes, %d bases and %d slopes", ErrInvalid, jobs, len(p.Sizes), len(p.Base), len(p.Slope))
	}
	for k, n := range p.Capacity {
		if !finite(n) || n < 0 {
			return fmt.Errorf("lp: %w: type %d has %g devices", ErrInvalid, k, n)
		}
	}
	grows := false
	for m, rates := range p.Rates {
		if len(rates) != len(p.Capacity) {
			return fmt.Errorf("lp: %w: job %d has %d rates for %d types", ErrInvalid, m, len(rates), len(p.Capacity))
		}
		for k, r := range rates {
			if !finite(r) || r < 0 {
				return fmt.Errorf("lp: %w: job %d has the rate %g on type %d; give zero or more", ErrInvalid, m, r, k)
			}
		}
		switch {
		case !finite(p.Sizes[m]) || p.Sizes[m] <= 0:
			return fmt.Errorf("lp: %w: job %d holds %g devices; give a positive number", ErrInvalid, m, p.Sizes[m])
		case !finite(p.base(m)):
			return fmt.Errorf("lp: %w: job %d has the base %g", ErrInvalid, m, p.base(m))
		case !finite(p.slope(m)) || p.slope(m) < 0:
			return fmt.Errorf("lp: %w: job %d has the slope %g; give zero or more", ErrInvalid, m, p.slope(m))
		}
		grows = grows || p.slope(m) > 0
	}
	if !grows {
		return fmt.Errorf("lp: %w: no job has a positive slope, so the level has no limit", ErrInvalid)
	}
	return nil
}

func (p *MaxMin) base(m int) float64 {
	if p.Base == nil {
		return 0
	}
	return p.Base[m]
}

func (p *MaxMin) slope(m int) float64 {
	if p.Slope == nil {
		return 1
	}
	return p.Slope[m]
}

// Solve returns the optimum; jobs that are alike get alike shares. It fails with [ErrInvalid], with [ErrInfeasible] if
// the bases of jobs that do not grow ask for more than there is, with [ErrNumerical] if no gap of 1e-8 can be proven, or
// with the error of ctx.
func (p *MaxMin) Solve(ctx context.Context) (*Shares, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	c, err := p.solve(ctx, math.Inf(1))
	if err != nil {
		return nil, err
	}
	s := c.shares()
	c.free()
	if s.Gap > maxMinAccept {
		return nil, &NumericalError{Residuals: Residuals{Gap: s.Gap}, Tolerance: maxMinAccept, Iterations: s.Points}
	}
	return s, nil
}

// solve looks for the optimum, or only for a level of at least enough.
func (p *MaxMin) solve(ctx context.Context, enough float64) (*pricing, error) {
	c := newPricing(p)
	c.enough = enough
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, c.improve(ctx)
}

// pricing solves a MaxMin by prices. Its memory is used again for others once it is free.
type pricing struct {
	jobs, types int
	rates       []float64 // by job and type
	byRate      []int32   // types of each job in heads, slowest first
	sizes       []float64
	base, slope []float64
	capacity    []float64
	enough      float64 // level at which to stop
	arena       arena   // of the vectors by type
	// Jobs that are alike in everything are priced once.
	like      []int32   // by job, the first job that is like it
	heads     []int     // the first jobs of their kinds
	byHash    []int32   // scratch of sortKinds
	alike     []float64 // by job in heads, how many are like it, itself among them
	low, high float64   // t is between: below low nothing that grows asks for anything, at high some job is at its best

	// Hulls at the prices looked at last: corners of job m are at m*(types+1), the origin first.
	corners []int32 // how many, by job
	rate    []float64
	cost    []float64
	on      []int32 // type of the corner

	points []pricePoint
	mix    mixture   // the best answer
	lower  float64   // value of the best answer
	best   int       // point whose t, the lowest, bounds the optimum
	dual   []float64 // prices of the best answer, p'N = 1
}

// pricePoint is what prices lead to.
type pricePoint struct {
	prices []float64 // p'N = 1; nil for a point given as shares
	t      float64
	use    []float64 // devices in use, by type
	given  []float64 // shares by job and type, if not from prices; nil is nothing at all
}

// pricings are those free to be used again.
var pricings = sync.Pool{New: func() any { return &pricing{} }}

// free gives c back, of which nothing may be in use any more.
func (c *pricing) free() { pricings.Put(c) }

func newPricing(p *MaxMin) *pricing {
	c := pricings.Get().(*pricing)
	c.jobs, c.types, c.sizes, c.capacity = len(p.Rates), len(p.Capacity), p.Sizes, p.Capacity
	c.low, c.high, c.lower, c.best, c.dual = math.Inf(1), math.Inf(1), math.Inf(-1), -1, nil
	c.points = c.points[:0]
	c.arena.reset()
	c.mix.reset(c.types)
	corners := c.jobs * (c.types + 1)
	c.corners, c.rate, c.cost, c.on = sized(c.corners, c.jobs), sized(c.rate, corners), sized(c.cost, corners), sized(c.on, corners)
	c.base, c.slope, c.rates = sized(c.base, c.jobs), sized(c.slope, c.jobs), c.rates[:0]
	for m, rates := range p.Rates {
		c.rates = append(c.rates, rates...)
		c.base[m], c.slope[m] = p.base(m), p.slope(m)
	}
	c.sortKinds()
	c.byRate = sized(c.byRate, c.jobs*c.types)
	for _, m := range c.heads {
		c.sortTypes(m)
		if c.slope[m] > 0 {
			c.low = math.Min(c.low, -c.base[m]/c.slope[m])
			c.high = math.Min(c.high, (p.most(m)-c.base[m])/c.slope[m])
		}
	}
	c.high = math.Max(c.low, c.high)
	return c
}

// sized returns a slice of n of anything, in the memory of s if that is enough.
func sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// arena is memory for small vectors, which are all given up together.
type arena struct{ room []float64 }

func (a *arena) reset() { a.room = a.room[:0] }

// vector returns n zeros.
func (a *arena) vector(n int) []float64 {
	const most = 512 // vectors of one piece
	if len(a.room)+n > cap(a.room) {
		a.room = make([]float64, 0, max(2*cap(a.room), most*n))
	}
	v := a.room[len(a.room) : len(a.room)+n : len(a.room)+n]
	a.room = a.room[:len(a.room)+n]
	clear(v)
	return v
}

// sortTypes orders the types of job m by its rate on them.
func (c *pricing) sortTypes(m int) {
	rates, order := c.rates[m*c.types:(m+1)*c.types], c.byRate[m*c.types:(m+1)*c.types]
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(rates[a], rates[b]), cmp.Compare(a, b)) })
}

// sortKinds finds the jobs that are alike, by a table of heads with open addressing.
func (c *pricing) sortKinds() {
	c.like, c.alike, c.heads = sized(c.like, c.jobs), sized(c.alike, c.jobs), c.heads[:0]
	clear(c.alike)
	c.byHash = sized(c.byHash, 2<<bits.Len(uint(c.jobs))) // at most half full; the head plus one, 0 is free
	clear(c.byHash)
	last := uint64(len(c.byHash) - 1)
	for m := range c.jobs {
		at := c.hash(m)
		for at &= last; c.byHash[at] != 0 && !c.same(int(c.byHash[at]-1), m); at = (at + 1) & last {
		}
		if c.byHash[at] == 0 {
			c.byHash[at] = int32(m + 1)
			c.heads = append(c.heads, m)
		}
		c.like[m] = c.byHash[at] - 1
		c.alike[c.like[m]]++
	}
}

// hash returns a number that is the same for jobs that are alike.
func (c *pricing) hash(m int) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, by words
	mix := func(v float64) { h = (h ^ math.Float64bits(v)) * 1099511628211 }
	for _, r := range c.rates[m*c.types : (m+1)*c.types] {
		mix(r)
		h ^= h >> 29
	}
	mix(c.sizes[m])
	mix(c.base[m])
	mix(c.slope[m])
	return h ^ h>>32
}

// same reports whether jobs m and n are alike.
func (c *pricing) same(m, n int) bool {
	return c.sizes[m] == c.sizes[n] && c.base[m] == c.base[n] && c.slope[m] == c.slope[n] &&
		slices.Equal(c.rates[m*c.types:(m+1)*c.types], c.rates[n*c.types:(n+1)*c.types])
}

// start makes the first points: one that is feasible, one at prices that are worth the same in every type, and one
// for each type with all value in it.
func (c *pricing) start(ctx context.Context) error {
	if err := c.feasible(ctx); err != nil {
		return err
	}
	var some []int
	for k, n := range c.capacity {
		if n > 0 {
			some = append(some, k)
		}
	}
	even := c.arena.vector(c.types)
	for _, k := range some {
		even[k] = 1 / (float64(len(some)) * c.capacity[k])
	}
	c.try(even)
	for _, k := range some {
		p := c.arena.vector(c.types)
		p[k] = 1 / c.capacity[k]
		c.try(p)
	}
	return nil
}

// feasible adds a point at the lowest level: nothing at all, or what jobs ask for whatever the level. How much of that
// can be had is a MaxMin itself.
func (c *pricing) feasible(ctx context.Context) error {
	asked := &MaxMin{Capacity: c.capacity}
	var who []int
	for m := range c.jobs {
		if g := c.base[m] + c.slope[m]*c.low; g > 1e-12*math.Max(1, math.Abs(c.base[m])) {
			who = append(who, m)
			asked.Rates = append(asked.Rates, c.rates[m*c.types:(m+1)*c.types])
			asked.Sizes = append(asked.Sizes, c.sizes[m])
			asked.Slope = append(asked.Slope, g)
		}
	}
	lowest := pricePoint{t: c.low, use: c.arena.vector(c.types)}
	if len(who) > 0 {
		a, err := asked.solve(ctx, 1)
		if err != nil {
			return err
		}
		s := a.shares()
		a.free()
		if s.Level < 1-maxMinAccept {
			return fmt.Errorf("lp: %w: only %.9g of what %d jobs ask for whatever the level can be had", ErrInfeasible, s.Level, len(who))
		}
		lowest.given = make([]float64, c.jobs*c.types)
		for i, m := range who {
			for k, v := range s.X[i] {
				lowest.given[m*c.types+k] = v * math.Min(1, 1/s.Level)
			}
		}
		lowest.use = c.used(lowest.given)
	}
	c.points = append(c.points, lowest)
	return nil
}

// used returns the devices of each type that shares x take.
func (c *pricing) used(x []float64) []float64 {
	use := c.arena.vector(c.types)
	for m, size := range c.sizes {
		for k := range use {
			use[k] += size * x[m*c.types+k]
		}
	}
	return use
}

// try adds the point that prices p, with p'N = 1, lead to.
func (c *pricing) try(p []float64) {
	c.hulls(p)
	t := c.root()
	c.points = append(c.points, pricePoint{prices: p, t: t, use: c.usage(t, nil)})
	if c.best < 0 || t < c.points[c.best].t {
		c.best = len(c.points) - 1
	}
}

// hulls finds the cheapest way to every rate of every job.
func (c *pricing) hulls(p []float64) {
	for _, m := range c.heads {
		at := m * (c.types + 1)
		rate, cost, on := c.rate[at:at+c.types+1], c.cost[at:at+c.types+1], c.on[at:at+c.types+1]
		rate[0], cost[0], on[0] = 0, 0, -1
		n := 1
		size := c.sizes[m]
		rates := c.rates[m*c.types : (m+1)*c.types]
		for _, k := range c.byRate[m*c.types : (m+1)*c.types] {
			if c.capacity[k] == 0 || rates[k] == 0 {
				continue
			}
			r, v := rates[k], size*p[k]
			// A corner above the line from the one before it to the new one, or no faster and no cheaper, goes.
			for n > 1 && (v <= cost[n-1] || (cost[n-1]-cost[n-2])*(r-rate[n-1]) >= (v-cost[n-1])*(rate[n-1]-rate[n-2])) {
				n--
			}
			if n > 1 && r == rate[n-1] {
				continue
			}
			rate[n], cost[n], on[n] = r, v, k
			n++
		}
		c.corners[m] = int32(n)
	}
}

// edge returns the corner that ends the part of job m's hull where the rate g is, g > 0.
func (c *pricing) edge(m int, g float64) int {
	at := m * (c.types + 1)
	last := at + int(c.corners[m]) - 1
	i := at + 1
	for i < last && c.rate[i] < g {
		i++
	}
	return i
}

// spent returns Σ_m C_m at level t, and its slope there.
func (c *pricing) spent(t float64) (cost, slope float64) {
	for _, m := range c.heads {
		b := c.slope[m]
		g := c.base[m] + b*t
		if g <= 0 || c.corners[m] < 2 {
			continue
		}
		i := c.edge(m, g)
		s := (c.cost[i] - c.cost[i-1]) / (c.rate[i] - c.rate[i-1])
		cost += c.alike[m] * (c.cost[i-1] + s*(g-c.rate[i-1]))
		slope += c.alike[m] * s * b
	}
	return cost, slope
}

// root returns the highest level at which the jobs spend 1, or the highest that every job alone can reach if that is
// less. If what does not grow spends more than 1, by rounding, that is the budget. What jobs spend is convex in the
// level, so that Newton's method comes down from above and ends at the root.
func (c *pricing) root() float64 {
	budget, _ := c.spent(c.low)
	budget = math.Max(1, budget) * (1 + 4e-16)
	t := c.high
	if c.best >= 0 {
		t = c.points[c.best].t
	}
	cost, slope := c.spent(t)
	if cost <= budget { // left of the root: a step of Newton's leads to the right of it
		if slope <= 0 {
			t = c.high
		} else {
			t = math.Min(c.high, t+(budget-cost)/slope)
		}
		cost, slope = c.spent(t)
	}
	for cost > budget {
		next := math.Max(c.low, t-(cost-budget)/slope)
		if !(next < t) {
			break
		}
		t = next
		cost, slope = c.spent(t)
	}
	return t
}

// usage returns the devices of each type that are in use at level t, and gives x, if there is one, every share
// of a job in heads.
func (c *pricing) usage(t float64, x func(m int, k int32, share float64)) []float64 {
	use := c.arena.vector(c.types)
	put := func(m, i int, share float64) {
		if k := c.on[i]; k >= 0 && share > 0 {
			use[k] += c.alike[m] * c.sizes[m] * share
			if x != nil {
				x(m, k, share)
			}
		}
	}
	for _, m := range c.heads {
		g := c.base[m] + c.slope[m]*t
		if g <= 0 || c.corners[m] < 2 {
			continue
		}
		i := c.edge(m, g)
		f := math.Min(1, (g-c.rate[i-1])/(c.rate[i]-c.rate[i-1]))
		put(m, i-1, 1-f)
		put(m, i, f)
	}
	return use
}

// improve tries prices until bound and answer meet.
func (c *pricing) improve(ctx context.Context) error {
	for len(c.points) < maxMinPoints {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("lp: stopped after %d price vectors: %w", len(c.points), err)
		}
		before := c.lower
		if err := c.combine(); err != nil {
			return err
		}
		if c.done(before) {
			return nil
		}
		next := c.arena.vector(c.types)
		for k := range next {
			next[k] = (c.dual[k] + c.points[c.best].prices[k]) / 2
		}
		bound := c.points[c.best].t
		c.try(next)
		if c.points[c.best].t >= bound { // half way was no better: go all the way
			c.try(slices.Clone(c.dual))
		}
	}
	return &NumericalError{Residuals: Residuals{Gap: c.gap()}, Tolerance: maxMinAccept, Iterations: len(c.points)}
}

// done reports whether the answer, which was before until the last point came, is good enough, or provably never will
// be.
func (c *pricing) done(before float64) bool {
	bound := c.points[c.best].t
	switch gap := c.gap(); {
	case gap <= maxMinGap || gap <= maxMinAccept && c.lower <= before:
		return true
	case math.IsInf(c.enough, 1):
		return false
	}
	return c.lower >= c.enough || bound < c.enough*(1-maxMinAccept)
}

// gap returns the distance of bound and answer.
func (c *pricing) gap() float64 {
	return math.Max(0, c.points[c.best].t-c.lower) / math.Max(1, math.Abs(c.lower))
}

// combine finds the best mixture of the points so far, and its prices.
func (c *pricing) combine() error {
	for i := len(c.mix.t); i < len(c.points); i++ {
		p := c.points[i]
		v := c.arena.vector(c.types)
		for k, n := range c.capacity {
			if n > 0 {
				v[k] = (p.use[k] - n) / n
			}
			if math.Abs(v[k]) < 1e-12 {
				v[k] = 0 // rounding
			}
		}
		c.mix.add(p.t, v)
	}
	if !c.mix.solve() {
		return &NumericalError{Residuals: Residuals{Gap: c.gap()}, Tolerance: maxMinAccept, Iterations: len(c.points)}
	}
	c.lower = c.mix.price[c.types]
	if c.dual = c.normalize(c.mix.price); c.dual == nil {
		c.dual = c.points[c.best].prices
	}
	return nil
}

// normalize returns the duals of the types' rows, in parts of their devices, as prices with p'N = 1; nil if all are
// zero.
func (c *pricing) normalize(dual []float64) []float64 {
	total := 0.0
	for k, n := range c.capacity {
		if n > 0 {
			total += math.Max(0, dual[k])
		}
	}
	if total == 0 {
		return nil
	}
	p := c.arena.vector(c.types)
	for k, n := range c.capacity {
		if n > 0 {
			p[k] = math.Max(0, dual[k]) / (total * n)
		}
	}
	return p
}

// shares returns the mixture, cut to what there is.
func (c *pricing) shares() *Shares {
	x := make([]float64, c.jobs*c.types)
	weights := c.mix.weights()
	for i, p := range c.points[:len(weights)] {
		w := weights[i]
		if w == 0 {
			continue
		}
		if p.prices == nil {
			for j, v := range p.given {
				x[j] += w * v
			}
			continue
		}
		c.hulls(p.prices)
		c.usage(p.t, func(m int, k int32, share float64) { x[m*c.types+int(k)] += w * share })
	}
	c.copyAlike(x)
	s := &Shares{X: make([][]float64, c.jobs), Points: len(c.points)}
	c.fit(x)
	for m := range s.X {
		s.X[m] = x[m*c.types : (m+1)*c.types : (m+1)*c.types]
	}
	s.Level = c.level(x)
	bound := c.points[c.best]
	s.Gap = math.Max(0, bound.t-s.Level) / math.Max(1, math.Abs(s.Level))
	c.hulls(bound.prices)
	s.Prices = slices.Clone(bound.prices)
	_, slope := c.spent(bound.t)
	for k := range s.Prices {
		if slope > 0 {
			s.Prices[k] /= slope
		} else {
			s.Prices[k] = 0
		}
	}
	return s
}

// copyAlike gives jobs what those like them in heads have.
func (c *pricing) copyAlike(x []float64) {
	for m, head := range c.like {
		if int(head) != m {
			copy(x[m*c.types:(m+1)*c.types], x[int(head)*c.types:(int(head)+1)*c.types])
		}
	}
}

// fit scales x down, by rounding, where it takes more time or devices than there are.
func (c *pricing) fit(x []float64) {
	for m := range c.jobs {
		row := x[m*c.types : (m+1)*c.types]
		sum := 0.0
		for _, v := range row {
			sum += v
		}
		if sum > 1 {
			for k := range row {
				row[k] /= sum
			}
		}
	}
	use := c.used(x)
	for k, n := range c.capacity {
		if use[k] > n {
			for m := range c.jobs {
				x[m*c.types+k] *= n / use[k]
			}
		}
	}
}

// level returns the least level of the jobs at shares x.
func (c *pricing) level(x []float64) float64 {
	least := math.Inf(1)
	for m, b := range c.slope {
		if b == 0 {
			continue
		}
		rate := 0.0
		for k := range c.types {
			rate += c.rates[m*c.types+k] * x[m*c.types+k]
		}
		least = math.Min(least, (rate-c.base[m])/b)
	}
	return least
}

// general states p as a linear programme: t first, then the shares by job and type; for each job the row of its rate
// and that of its time, then the rows of the types.
func (p *MaxMin) general() *Problem {
	q := New(Maximize)
	t := q.Var("t", -Inf, Inf, 1)
	used := make([][]Term, len(p.Capacity))
	for m, rates := range p.Rates {
		rate := []Term{{t, -p.slope(m)}}
		var time []Term
		for k, v := range rates {
			x := q.Var("", 0, Inf, 0)
			rate = append(rate, Term{x, v})
			time = append(time, Term{x, 1})
			used[k] = append(used[k], Term{x, p.Sizes[m]})
		}
		q.AtLeast("", p.base(m), rate...)
		q.AtMost("", 1, time...)
	}
	for k, n := range p.Capacity {
		q.AtMost("", n, used[k]...)
	}
	return q
}
