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

// pricing solves a MaxMin by prices. A pool reuses its memory.
type pricing struct {
	jobs, types int
	rates       []float64 // by job and type
	byRate      []int32   // types of each class representative, slowest first
	sizes       []float64
	capacity    []float64
	arena       arena // memory of the vectors by type
	// Identical jobs form a class, which is priced once.
	representative  []int32   // first job of the class, by job
	representatives []int     // first job of every class
	byHash          []int32   // scratch of groupIdentical
	multiplicity    []float64 // size of the class, by representative
	high            float64   // greatest t: there a job reaches its top rate

	// Hulls at the latest prices: the corners of job m start at m*(types+1), with the origin first.
	corners []int32 // number of corners by job
	rate    []float64
	cost    []float64
	on      []int32 // device type of the corner

	points []pricePoint
	mix    mixture   // best answer
	lower  float64   // value of the best answer
	best   int       // index of the point with the lowest t, which bounds the optimum
	dual   []float64 // prices of the best answer, p'N = 1
}

// pricePoint is the answer at one price vector.
type pricePoint struct {
	prices []float64 // p'N = 1; nil for the point at which no job runs
	t      float64
	use    []float64 // devices in use, by type
}

// pricingPool holds released pricings for reuse.
var pricingPool = sync.Pool{New: func() any { return &pricing{} }}

// release returns c to the pool; the caller must not use it afterwards.
func (c *pricing) release() { pricingPool.Put(c) }

func newPricing(p *MaxMin) *pricing {
	c := pricingPool.Get().(*pricing)
	c.jobs, c.types, c.sizes, c.capacity = len(p.Rates), len(p.Capacity), p.Sizes, p.Capacity
	c.high, c.lower, c.best, c.dual = math.Inf(1), math.Inf(-1), -1, nil
	c.points = c.points[:0]
	c.arena.reset()
	c.mix.reset(c.types)
	corners := c.jobs * (c.types + 1)
	c.corners, c.rate, c.cost, c.on = sized(c.corners, c.jobs), sized(c.rate, corners), sized(c.cost, corners), sized(c.on, corners)
	c.rates = c.rates[:0]
	for _, rates := range p.Rates {
		c.rates = append(c.rates, rates...)
	}
	c.groupIdentical()
	c.byRate = sized(c.byRate, c.jobs*c.types)
	for _, m := range c.representatives {
		c.sortTypes(m)
		c.high = math.Min(c.high, p.topRate(m))
	}
	return c
}

// sized returns a slice of length n, in the memory of s if that suffices.
func sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// arena is memory for small vectors with one common lifetime.
type arena struct{ room []float64 }

func (a *arena) reset() { a.room = a.room[:0] }

// vector returns n zeros.
func (a *arena) vector(n int) []float64 {
	const most = 512 // vectors per allocation
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

// groupIdentical groups identical jobs by a hash table of representatives with open addressing.
func (c *pricing) groupIdentical() {
	c.representative, c.multiplicity, c.representatives = sized(c.representative, c.jobs), sized(c.multiplicity, c.jobs), c.representatives[:0]
	clear(c.multiplicity)
	c.byHash = sized(c.byHash, 2<<bits.Len(uint(c.jobs))) // at most half full; entries are the job plus one, 0 is free
	clear(c.byHash)
	last := uint64(len(c.byHash) - 1)
	for m := range c.jobs {
		at := c.hash(m)
		for at &= last; c.byHash[at] != 0 && !c.same(int(c.byHash[at]-1), m); at = (at + 1) & last {
		}
		if c.byHash[at] == 0 {
			c.byHash[at] = int32(m + 1)
			c.representatives = append(c.representatives, m)
		}
		c.representative[m] = c.byHash[at] - 1
		c.multiplicity[c.representative[m]]++
	}
}

// hash returns equal numbers for identical jobs.
func (c *pricing) hash(m int) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, by words
	mix := func(v float64) { h = (h ^ math.Float64bits(v)) * 1099511628211 }
	for _, r := range c.rates[m*c.types : (m+1)*c.types] {
		mix(r)
		h ^= h >> 29
	}
	mix(c.sizes[m])
	return h ^ h>>32
}

// same reports whether jobs m and n are identical.
func (c *pricing) same(m, n int) bool {
	return c.sizes[m] == c.sizes[n] && slices.Equal(c.rates[m*c.types:(m+1)*c.types], c.rates[n*c.types:(n+1)*c.types])
}

// start evaluates the first points: one without running jobs, one with equal value in every type, and for each type one
// with all value in it.
func (c *pricing) start() {
	c.points = append(c.points, pricePoint{use: c.arena.vector(c.types)})
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
	c.evaluate(even)
	for _, k := range some {
		p := c.arena.vector(c.types)
		p[k] = 1 / c.capacity[k]
		c.evaluate(p)
	}
}

// improve evaluates prices until bound and answer meet.
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
		c.evaluate(next)
		if c.points[c.best].t >= bound { // half way was no better: go all the way
			c.evaluate(slices.Clone(c.dual))
		}
	}
	return &NumericalError{Residuals: Residuals{Gap: c.gap()}, Tolerance: maxMinAccept, Iterations: len(c.points)}
}

// done reports whether the answer is good enough. before is the answer of the last round.
func (c *pricing) done(before float64) bool {
	gap := c.gap()
	return gap <= maxMinGap || gap <= maxMinAccept && c.lower <= before
}

// gap returns the relative distance of bound and answer.
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

// normalize returns the duals of the types' rows, which are relative to capacity, as prices with p'N = 1; nil if all
// are zero.
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
