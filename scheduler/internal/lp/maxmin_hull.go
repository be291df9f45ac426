package lp

import (
	"math"
)

// evaluate adds the point at prices p, with p'N = 1.
func (c *pricing) evaluate(p []float64) {
	c.hulls(p)
	t := c.root()
	c.points = append(c.points, pricePoint{prices: p, t: t, use: c.usage(t, nil)})
	if c.best < 0 || t < c.points[c.best].t {
		c.best = len(c.points) - 1
	}
}

// hulls computes the least cost of every rate for every job.
func (c *pricing) hulls(p []float64) {
	for _, m := range c.representatives {
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
			// Drop a corner above the line from its predecessor to the new one, or with no higher rate and no lower
			// cost.
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

// edge returns the corner that ends the hull segment with rate g > 0 of job m.
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
	for _, m := range c.representatives {
		if t <= 0 || c.corners[m] < 2 {
			continue
		}
		i := c.edge(m, t)
		s := (c.cost[i] - c.cost[i-1]) / (c.rate[i] - c.rate[i-1])
		cost += c.multiplicity[m] * (c.cost[i-1] + s*(t-c.rate[i-1]))
		slope += c.multiplicity[m] * s
	}
	return cost, slope
}

// root returns the highest level at which the jobs spend 1, but at most high. The cost is convex in the level, so
// Newton's method from above converges to the root.
func (c *pricing) root() float64 {
	const budget = 1 + 4e-16
	t := c.high
	if c.best >= 0 {
		t = c.points[c.best].t
	}
	cost, slope := c.spent(t)
	if cost <= budget { // left of the root: a Newton step leads to its right
		if slope <= 0 {
			t = c.high
		} else {
			t = math.Min(c.high, t+(budget-cost)/slope)
		}
		cost, slope = c.spent(t)
	}
	for cost > budget {
		next := math.Max(0, t-(cost-budget)/slope)
		if !(next < t) {
			break
		}
		t = next
		cost, slope = c.spent(t)
	}
	return t
}

// usage returns the devices of each type in use at level t. It passes every share of a class representative to x,
// unless x is nil.
func (c *pricing) usage(t float64, x func(m int, k int32, share float64)) []float64 {
	use := c.arena.vector(c.types)
	put := func(m, i int, share float64) {
		if k := c.on[i]; k >= 0 && share > 0 {
			use[k] += c.multiplicity[m] * c.sizes[m] * share
			if x != nil {
				x(m, k, share)
			}
		}
	}
	for _, m := range c.representatives {
		if t <= 0 || c.corners[m] < 2 {
			continue
		}
		i := c.edge(m, t)
		f := math.Min(1, (t-c.rate[i-1])/(c.rate[i]-c.rate[i-1]))
		put(m, i-1, 1-f)
		put(m, i, f)
	}
	return use
}
