package lp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Filled is the result of WaterFill.
type Filled struct {
	Levels []float64   // t, by job; NaN for jobs with slope zero
	X      [][]float64 // share of time, by job and type
	Rounds int         // distinct levels at which jobs stopped
}

// WaterFill returns the lexicographic max-min optimum: the least level is as high as possible, then the next least,
// and so on (Radunović and Le Boudec, A unified framework for max-min and min-max fairness with applications, IEEE/ACM
// Trans. Networking 15(5), 2007). A job can have more only if a job with at most its level gets less.
//
// All growing jobs rise together until some must stop. Optimal prices identify them: a job stops if its next unit of
// rate has a positive cost, because the budget is spent. Jobs at their top rate stop too, any number of levels at
// once.
//
// Levels are exact to about 1e-7. It fails as [MaxMin.Solve] does.
func (p *MaxMin) WaterFill(ctx context.Context) (*Filled, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	w := newWaterFilling(p)
	for w.left > 0 {
		if err := w.raise(ctx); err != nil {
			return nil, err
		}
		w.rounds++
	}
	return w.filled(), nil
}

// waterFilling is the state of a water-filling.
type waterFilling struct {
	now     *MaxMin   // stopped jobs have their rate as base and slope 0
	growing []bool    // by job
	level   []float64 // final level, by job; NaN until it stops
	top     []float64 // level at the job's top rate, by job
	left    int       // number of growing jobs
	x       []float64 // shares that give every job its present rate
	rounds  int
}

func newWaterFilling(p *MaxMin) *waterFilling {
	jobs := len(p.Rates)
	w := &waterFilling{
		now:     &MaxMin{Rates: slices.Clone(p.Rates), Sizes: p.Sizes, Capacity: p.Capacity, Base: make([]float64, jobs), Slope: make([]float64, jobs)},
		growing: make([]bool, jobs), level: make([]float64, jobs), top: make([]float64, jobs),
	}
	for m := range jobs {
		w.now.Base[m], w.now.Slope[m] = p.base(m), p.slope(m)
		w.level[m] = math.NaN()
		if w.growing[m] = p.slope(m) > 0; w.growing[m] {
			w.left++
			w.top[m] = (w.now.topRate(m) - p.base(m)) / p.slope(m)
		}
	}
	return w
}

// topRate returns the highest rate of job m over the types with devices.
func (p *MaxMin) topRate(m int) float64 {
	most := 0.0
	for k, r := range p.Rates[m] {
		if p.Capacity[k] > 0 {
			most = math.Max(most, r)
		}
	}
	return most
}

// raise lifts all growing jobs until at least one must stop, and stops those.
func (w *waterFilling) raise(ctx context.Context) error {
	c, t, prices, err := w.highestLevel(ctx)
	if err != nil {
		return err
	}
	if t >= c.high-maxMinAccept*math.Max(1, math.Abs(c.high)) {
		return w.stopAtTops(ctx, c)
	}
	return w.stopPriced(c, t, prices)
}

// highestLevel returns the highest common level of the growing jobs, and prices that prove it; it sets x to shares
// with that level. After the first stop it solves the linear programme instead. Little room is left then, points from
// prices mix badly, and zero prices are hard to recognise. The interior-point method ends in the middle of the optimal
// prices.
func (w *waterFilling) highestLevel(ctx context.Context) (c *pricing, t float64, prices []float64, err error) {
	if w.rounds > 0 {
		return w.highestByLP(ctx)
	}
	if c, err = w.now.solve(ctx, math.Inf(1)); err != nil {
		return nil, 0, nil, err
	}
	s := c.shares()
	w.x = flat(s.X, c.types)
	return c, s.Level, c.dualPrices(), nil
}

// highestByLP is highestLevel by the linear programme.
func (w *waterFilling) highestByLP(ctx context.Context) (c *pricing, t float64, prices []float64, err error) {
	c = newPricing(w.now)
	s, err := w.now.general().Solve(ctx, Options{})
	if err != nil {
		return nil, 0, nil, fmt.Errorf("%w, at level %d of a water-filling", err, w.rounds+1)
	}
	w.x = s.X[1:]
	c.fit(w.x)
	dual := s.Duals[2*c.jobs:]
	for k, n := range c.capacity {
		dual[k] *= n
	}
	if prices = c.normalize(dual); prices == nil {
		return c, c.high, nil, nil
	}
	return c, s.X[0], c.clean(prices), nil
}

// stopAtTops handles jobs that reach their top rate before devices run out. It finds the highest feasible level at
// which every job stops at its top, and stops the jobs with lower tops.
func (w *waterFilling) stopAtTops(ctx context.Context, c *pricing) error {
	tops := w.distinctTops(c.high)
	var failed error
	// tops[0] is feasible; find the last feasible one.
	i := sort.Search(len(tops)-1, func(i int) bool {
		if failed != nil {
			return true
		}
		x, ok, err := w.feasible(ctx, tops[i+1])
		if err != nil {
			failed = err
		}
		if ok {
			w.x = x
		}
		return !ok
	})
	if failed != nil {
		return failed
	}
	for m, grows := range w.growing {
		if grows && w.top[m] <= tops[i] {
			w.stop(m, w.top[m])
			most := w.now.topRate(m)
			w.keepOn(m, func(_ int, rate float64) bool { return rate >= most*(1-maxMinAccept) })
		}
	}
	return nil
}

// distinctTops returns first and the higher top levels of growing jobs, ascending.
func (w *waterFilling) distinctTops(first float64) []float64 {
	tops := []float64{math.Nextafter(first, math.Inf(1))}
	for m, grows := range w.growing {
		if grows && w.top[m] > first {
			tops = append(tops, w.top[m])
		}
	}
	slices.Sort(tops)
	return slices.Compact(tops)
}

// feasible returns shares that lift every growing job to level t, or to its top if lower, and whether such shares
// exist.
func (w *waterFilling) feasible(ctx context.Context, t float64) (x []float64, ok bool, err error) {
	need := make([]float64, len(w.growing))
	for m := range need {
		g := w.now.Base[m]
		if w.growing[m] {
			g += w.now.Slope[m] * math.Min(t, w.top[m])
		}
		if g > 1e-12*math.Abs(w.now.Base[m]) {
			need[m] = g
		}
	}
	x, level, err := w.now.supply(ctx, need)
	return x, err == nil && level >= 1-maxMinAccept, err
}

// stopPriced stops, at level t, the jobs with a positive cost of the next unit of rate. Growing jobs then avoid the
// types with a price: the budget is spent, so they could not pay for them.
func (w *waterFilling) stopPriced(c *pricing, t float64, prices []float64) error {
	stopped := false
	for m, v := range c.marginal(prices, t) {
		if w.growing[m] && v > 0 {
			w.stop(m, t)
			stopped = true
		}
	}
	if !stopped {
		return fmt.Errorf("lp: %w: no job has to stop at level %g of a water-filling", ErrNumerical, t)
	}
	for m, grows := range w.growing {
		if grows {
			w.keepOn(m, func(k int, _ float64) bool { return !(prices[k] > 0) })
			w.top[m] = (w.now.topRate(m) - w.now.Base[m]) / w.now.Slope[m]
		}
	}
	return nil
}

// keepOn sets the rates of job m to 0 on the types for which on returns false.
func (w *waterFilling) keepOn(m int, on func(k int, rate float64) bool) {
	rates := slices.Clone(w.now.Rates[m])
	for k, r := range rates {
		if !on(k, r) {
			rates[k] = 0
		}
	}
	w.now.Rates[m] = rates
}

// fillMargin is the share of its rate that a stopped job may lose to growing jobs. It absorbs rounding, which could
// otherwise make the next round infeasible.
const fillMargin = 1e-9

// stop fixes job m at level t.
func (w *waterFilling) stop(m int, t float64) {
	w.growing[m] = false
	w.left--
	w.level[m] = t
	rise := w.now.Slope[m] * t
	if rate := w.now.Base[m] + rise; rate > 1e-12*math.Abs(rise) {
		w.now.Base[m] = rate * (1 - fillMargin)
	} else { // zero up to rounding
		w.now.Base[m] = 0
	}
	w.now.Slope[m] = 0
}

// filled returns the result.
func (w *waterFilling) filled() *Filled {
	types := len(w.now.Capacity)
	f := &Filled{Levels: w.level, X: make([][]float64, len(w.growing)), Rounds: w.rounds}
	for m := range f.X {
		f.X[m] = w.x[m*types : (m+1)*types : (m+1)*types]
	}
	return f
}

func flat(x [][]float64, types int) []float64 {
	v := make([]float64, 0, len(x)*types)
	for _, row := range x {
		v = append(v, row...)
	}
	return v
}

// dualPrices returns the prices of the best mixture, with rounding errors set to zero. If that loosens the bound, it
// returns the prices with the best bound.
func (c *pricing) dualPrices() []float64 {
	p := c.clean(c.dual)
	best := c.points[c.best]
	c.hulls(p)
	if c.root() <= best.t+maxMinAccept*math.Max(1, math.Abs(best.t)) {
		return p
	}
	return best.prices
}

// clean returns prices p with rounding errors set to zero. Errors are relative to the highest price of a type on which
// jobs can still grow, because types used by stopped jobs may hold nearly all of the value.
func (c *pricing) clean(p []float64) []float64 {
	p = slices.Clone(p)
	open := make([]bool, c.types)
	for _, m := range c.representatives {
		for k, r := range c.rates[m*c.types : (m+1)*c.types] {
			open[k] = open[k] || r > 0 && c.slope[m] > 0
		}
	}
	highest := 0.0
	for k, n := range c.capacity {
		if open[k] {
			highest = math.Max(highest, p[k]*n)
		}
	}
	worth := 0.0
	for k, n := range c.capacity {
		if p[k]*n < 1e-6*highest {
			p[k] = 0
		}
		worth += p[k] * n
	}
	divide(p, worth)
	return p
}

// marginal returns the cost of the next unit of level above t for each job at prices p, +Inf at its top rate.
func (c *pricing) marginal(p []float64, t float64) []float64 {
	c.hulls(p)
	cost := make([]float64, c.jobs)
	for m, b := range c.slope {
		head := int(c.representative[m])
		at := head * (c.types + 1)
		last := at + int(c.corners[head]) - 1
		g := c.base[m] + b*t
		i := at
		for i < last && c.rate[i+1] <= g+1e-9*math.Abs(g) {
			i++
		}
		switch {
		case b == 0:
		case g < -1e-9*math.Abs(c.base[m]): // no cost below rate 0
		case i == last:
			cost[m] = math.Inf(1)
		default:
			cost[m] = b * (c.cost[i+1] - c.cost[i]) / (c.rate[i+1] - c.rate[i])
		}
	}
	return cost
}
