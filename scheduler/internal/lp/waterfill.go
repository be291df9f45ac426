package lp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Filled are the shares WaterFill finds.
type Filled struct {
	Levels []float64   // t, by job; NaN for jobs that do not grow
	X      [][]float64 // share of its time, by job and type
	Rounds int         // levels at which jobs stopped growing
}

// WaterFill returns the lexicographic optimum: the least level is as high as can be, given that the next least is,
// and so on (Radunović and Le Boudec, A unified framework for max-min and min-max fairness with applications,
// IEEE/ACM Trans. Networking 15(5), 2007). No job can have more unless one that has no more than it has less.
//
// All jobs rise together until prices show who cannot: at prices that are optimal for the level, a job whose next bit
// of rate costs something would have the jobs spend more than there is, so that it stops there. Jobs that are as fast
// as they can be stop on the way, however many they are.
//
// Levels are exact to about 1e-7. It fails as [MaxMin.Solve] does.
func (p *MaxMin) WaterFill(ctx context.Context) (*Filled, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	w := newFilling(p)
	for w.left > 0 {
		if err := w.rise(ctx); err != nil {
			return nil, err
		}
		w.rounds++
	}
	return w.filled(), nil
}

// filling is a water-filling under way.
type filling struct {
	now     *MaxMin   // jobs that stopped have their rate as base and the slope 0
	growing []bool    // by job
	level   []float64 // by job that stopped
	top     []float64 // by job, the level at which it is as fast as it can be
	left    int       // jobs that grow
	x       []float64 // shares that give every job what it has so far
	rounds  int
}

func newFilling(p *MaxMin) *filling {
	jobs := len(p.Rates)
	w := &filling{
		now:     &MaxMin{Rates: slices.Clone(p.Rates), Sizes: p.Sizes, Capacity: p.Capacity, Base: make([]float64, jobs), Slope: make([]float64, jobs)},
		growing: make([]bool, jobs), level: make([]float64, jobs), top: make([]float64, jobs),
	}
	for m := range jobs {
		w.now.Base[m], w.now.Slope[m] = p.base(m), p.slope(m)
		w.level[m] = math.NaN()
		if w.growing[m] = p.slope(m) > 0; w.growing[m] {
			w.left++
			w.top[m] = (w.now.most(m) - p.base(m)) / p.slope(m)
		}
	}
	return w
}

// most returns the rate of job m where it is fastest, of the types that have devices.
func (p *MaxMin) most(m int) float64 {
	most := 0.0
	for k, r := range p.Rates[m] {
		if p.Capacity[k] > 0 {
			most = math.Max(most, r)
		}
	}
	return most
}

// rise lifts all jobs that grow until at least one of them cannot, and stops those.
func (w *filling) rise(ctx context.Context) error {
	c, t, prices, err := w.highest(ctx)
	if err != nil {
		return err
	}
	if t >= c.high-maxMinAccept*math.Max(1, math.Abs(c.high)) {
		return w.passTops(ctx, c)
	}
	return w.stopDear(c, t, prices)
}

// highest returns the highest level all jobs that grow can have together, and the prices that prove it; x becomes
// shares that give it. Once jobs have stopped there is little room left around their rates, in which points from
// prices mix badly and which prices are zero is hard to tell, so that from then on the linear programme is solved as
// such: it ends in the middle of the optimal prices.
func (w *filling) highest(ctx context.Context) (c *pricing, t float64, prices []float64, err error) {
	if w.rounds > 0 {
		return w.highestOfGeneral(ctx)
	}
	if c, err = w.now.solve(ctx, math.Inf(1)); err != nil {
		return nil, 0, nil, err
	}
	s := c.shares()
	w.x = flat(s.X, c.types)
	return c, s.Level, c.dualPrices(), nil
}

// highestOfGeneral is highest by the linear programme.
func (w *filling) highestOfGeneral(ctx context.Context) (c *pricing, t float64, prices []float64, err error) {
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

// passTops is for when jobs are stopped by their own speed before devices run out: it finds the highest level that can
// be had if all jobs stop at their tops, and stops those whose tops are below it.
func (w *filling) passTops(ctx context.Context, c *pricing) error {
	tops := w.distinctTops(c.high)
	var failed error
	// The first is known to be feasible; find the last that is.
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
			w.keepOn(m, w.fastest(m))
		}
	}
	return nil
}

// fastest returns the types on which job m is as fast as it can be.
func (w *filling) fastest(m int) []bool {
	on := make([]bool, len(w.now.Capacity))
	most := w.now.most(m)
	for k, r := range w.now.Rates[m] {
		on[k] = r >= most*(1-maxMinAccept)
	}
	return on
}

// distinctTops returns the tops of the jobs that grow, ascending, the first of them as given.
func (w *filling) distinctTops(first float64) []float64 {
	tops := []float64{math.Nextafter(first, math.Inf(1))}
	for m, grows := range w.growing {
		if grows && w.top[m] > first {
			tops = append(tops, w.top[m])
		}
	}
	slices.Sort(tops)
	return slices.Compact(tops)
}

// feasible returns shares that lift every job that grows to level t, or to its top if that is lower, and whether there
// are any.
func (w *filling) feasible(ctx context.Context, t float64) (x []float64, ok bool, err error) {
	types := len(w.now.Capacity)
	ask := &MaxMin{Capacity: w.now.Capacity}
	var who []int
	for m := range w.growing {
		g := w.now.Base[m]
		if w.growing[m] {
			g += w.now.Slope[m] * math.Min(t, w.top[m])
		}
		if g > 1e-12*math.Abs(w.now.Base[m]) {
			who = append(who, m)
			ask.Rates, ask.Sizes, ask.Slope = append(ask.Rates, w.now.Rates[m]), append(ask.Sizes, w.now.Sizes[m]), append(ask.Slope, g)
		}
	}
	if len(who) == 0 {
		return make([]float64, len(w.growing)*types), true, nil
	}
	c, err := ask.solve(ctx, 1)
	if err != nil {
		return nil, false, err
	}
	s := c.shares()
	if s.Level < 1-maxMinAccept {
		return nil, false, nil
	}
	x = make([]float64, len(w.growing)*types)
	for i, m := range who {
		copy(x[m*types:(m+1)*types], s.X[i])
	}
	return x, true, nil
}

// stopDear stops, at level t, the jobs whose next bit of rate costs something at the best prices. What has a price is
// wholly theirs from then on: whatever the others used of it would have to be paid for, and all is spent.
func (w *filling) stopDear(c *pricing, t float64, prices []float64) error {
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
			w.keepOff(m, prices)
		}
	}
	return nil
}

// keepOn keeps job m on the types given.
func (w *filling) keepOn(m int, types []bool) {
	rates := slices.Clone(w.now.Rates[m])
	for k, on := range types {
		if !on {
			rates[k] = 0
		}
	}
	w.now.Rates[m] = rates
}

// keepOff keeps job m off the types that have a price.
func (w *filling) keepOff(m int, prices []float64) {
	rates := slices.Clone(w.now.Rates[m])
	for k, p := range prices {
		if p > 0 {
			rates[k] = 0
		}
	}
	w.now.Rates[m] = rates
	w.top[m] = (w.now.most(m) - w.now.Base[m]) / w.now.Slope[m]
}

// fillMargin is the part of its rate that a job that stopped may lose to those that go on. Without it, rounding would
// leave them nothing to start from.
const fillMargin = 1e-9

// stop keeps job m at level t.
func (w *filling) stop(m int, t float64) {
	w.growing[m] = false
	w.left--
	w.level[m] = t
	rise := w.now.Slope[m] * t
	if rate := w.now.Base[m] + rise; rate > 1e-12*math.Abs(rise) {
		w.now.Base[m] = rate * (1 - fillMargin)
	} else { // nothing, but for rounding
		w.now.Base[m] = 0
	}
	w.now.Slope[m] = 0
}

// filled returns the result.
func (w *filling) filled() *Filled {
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

// dualPrices returns the prices of the best mixture, with those that are zero but for rounding set to zero, unless
// that makes them prove less; then the prices that prove most.
func (c *pricing) dualPrices() []float64 {
	p := c.clean(c.dual)
	best := c.points[c.best]
	c.hulls(p)
	if c.root() <= best.t+maxMinAccept*math.Max(1, math.Abs(best.t)) {
		return p
	}
	return best.prices
}

// clean returns prices p without those that are zero but for rounding, next to the highest of a type on which jobs
// can grow: the others may have nearly all of the value once they are spent on jobs that stopped.
func (c *pricing) clean(p []float64) []float64 {
	p = slices.Clone(p)
	open := make([]bool, c.types)
	for _, m := range c.heads {
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
	for k := range p {
		p[k] /= worth
	}
	return p
}

// marginal returns what the next bit of level above t costs each job at prices p, +Inf for those at their top.
func (c *pricing) marginal(p []float64, t float64) []float64 {
	c.hulls(p)
	cost := make([]float64, c.jobs)
	for m, b := range c.slope {
		head := int(c.like[m])
		at := head * (c.types + 1)
		last := at + int(c.corners[head]) - 1
		g := c.base[m] + b*t
		i := at
		for i < last && c.rate[i+1] <= g+1e-9*math.Abs(g) {
			i++
		}
		switch {
		case b == 0:
		case g < -1e-9*math.Abs(c.base[m]): // its next bits are free
		case i == last:
			cost[m] = math.Inf(1)
		default:
			cost[m] = b * (c.cost[i+1] - c.cost[i]) / (c.rate[i+1] - c.rate[i])
		}
	}
	return cost
}
