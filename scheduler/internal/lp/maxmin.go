package lp

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// MaxMin shares devices of a few types among many jobs and maximises the least level:
//
//	maximise t
//	subject to  Σ_k r_mk x_mk >= a_m + b_m t   rate of job m
//	            Σ_k x_mk <= 1                  time of job m
//	            Σ_m s_m x_mk <= N_k            devices of type k
//	            x >= 0
//
// The dual of this linear programme has one price per type, because prices separate the jobs. At prices p the least
// cost of rate g for job m, C_m(p, g), follows the lower convex hull of (0, 0) and the points (r_mk, s_m p_k). With
// p'N = 1, no t with Σ_m C_m(p, a_m + b_m t) > 1 is feasible, so
//
//	t* = min_p φ(p),  where φ(p) is the t at which the sum is 1.
//
// [MaxMin.Solve] finds that minimum by column generation (Dantzig and Wolfe, Decomposition principle for linear
// programs, Operations Research 8(1), 1960). Every price vector gives a point. The best mixture of points is a
// feasible answer, and its duals are the next prices. Column generation ends when answer and bound meet. Identical
// jobs are priced once. Above about twelve types the general solver is as fast.
type MaxMin struct {
	Rates    [][]float64 // r, by job and type, >= 0: rate of the job with all its time there
	Sizes    []float64   // s, by job, > 0: devices it holds while it runs
	Base     []float64   // a, by job; nil is all zero
	Slope    []float64   // b, by job, >= 0, one at least positive; nil is all one
	Capacity []float64   // N, by type, >= 0
}

// Shares are an optimum of a MaxMin.
type Shares struct {
	Level  float64     // t
	X      [][]float64 // share of time, by job and type
	Prices []float64   // by type: growth of t per additional device
	Gap    float64     // bound on the distance of Level from the optimum, relative to max(1, |Level|)
	Points int         // price vectors evaluated
}

const (
	maxMinGap    = 1e-9 // gap that ends column generation
	maxMinAccept = 1e-8 // gap accepted when no better prices are found
	maxMinPoints = 2000 // limit of price vectors
)

// Validate reports the first malformed capacity, job or rate.
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

func (p *MaxMin) base(m int) float64  { return entry(p.Base, m, 0) }
func (p *MaxMin) slope(m int) float64 { return entry(p.Slope, m, 1) }

// entry returns v[m], or the default if v is nil.
func entry(v []float64, m int, without float64) float64 {
	if v == nil {
		return without
	}
	return v[m]
}

// Solve returns the optimum; identical jobs get identical shares. It fails with [ErrInvalid], or with [ErrInfeasible]
// if the bases of jobs with slope zero exceed the capacity. It fails with [ErrNumerical] if no gap of 1e-8 is proven,
// or with the error of ctx.
func (p *MaxMin) Solve(ctx context.Context) (*Shares, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	c, err := p.solve(ctx, math.Inf(1))
	if err != nil {
		return nil, err
	}
	s := c.shares()
	c.release()
	if s.Gap > maxMinAccept {
		return nil, &NumericalError{Residuals: Residuals{Gap: s.Gap}, Tolerance: maxMinAccept, Iterations: s.Points}
	}
	return s, nil
}

// solve searches for the optimum, or stops at a level of at least enough.
func (p *MaxMin) solve(ctx context.Context, enough float64) (*pricing, error) {
	c := newPricing(p)
	c.enough = enough
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, c.improve(ctx)
}

// shares returns the mixture, cut to capacities.
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

// copyAlike copies the shares of each class representative to the identical jobs.
func (c *pricing) copyAlike(x []float64) {
	for m, head := range c.representative {
		if int(head) != m {
			copy(x[m*c.types:(m+1)*c.types], x[int(head)*c.types:(int(head)+1)*c.types])
		}
	}
}

// fit scales x down where rounding makes it exceed time or devices.
func (c *pricing) fit(x []float64) {
	for m := range c.jobs {
		row := x[m*c.types : (m+1)*c.types]
		sum := 0.0
		for _, v := range row {
			sum += v
		}
		if sum > 1 {
			divide(row, sum)
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

// general states p as a linear programme. Variables are t, then the shares by job and type. Rows are rate and time of
// each job, then the types.
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
