package lp

import (
	"context"
	"fmt"
	"math"
)

// MaxMin shares devices of a few types among many jobs and maximises the least level:
//
//	maximise t
//	subject to  Σ_k r_mk x_mk >= t    rate of job m
//	            Σ_k x_mk <= 1         time of job m
//	            Σ_m s_m x_mk <= N_k   devices of type k
//	            x >= 0
//
// The dual of this linear programme has one price per type, because prices separate the jobs. At prices p the least
// cost of rate g for job m, C_m(p, g), follows the lower convex hull of (0, 0) and the points (r_mk, s_m p_k). With
// p'N = 1, no t with Σ_m C_m(p, t) > 1 is feasible, so
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
	Capacity []float64   // N, by type, >= 0
}

// Shares are an optimum of a MaxMin.
type Shares struct {
	Level  float64     // t
	X      [][]float64 // share of time, by job and type
	Gap    float64     // bound on the distance of Level from the optimum, relative to max(1, Level)
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
	if jobs == 0 {
		return fmt.Errorf("lp: %w: no jobs, so the level has no limit", ErrInvalid)
	}
	if len(p.Sizes) != jobs {
		return fmt.Errorf("lp: %w: %d jobs have %d sizes", ErrInvalid, jobs, len(p.Sizes))
	}
	for k, n := range p.Capacity {
		if !finite(n) || n < 0 {
			return fmt.Errorf("lp: %w: type %d has %g devices", ErrInvalid, k, n)
		}
	}
	for m, rates := range p.Rates {
		if len(rates) != len(p.Capacity) {
			return fmt.Errorf("lp: %w: job %d has %d rates for %d types", ErrInvalid, m, len(rates), len(p.Capacity))
		}
		for k, r := range rates {
			if !finite(r) || r < 0 {
				return fmt.Errorf("lp: %w: job %d has the rate %g on type %d; give zero or more", ErrInvalid, m, r, k)
			}
		}
		if !finite(p.Sizes[m]) || p.Sizes[m] <= 0 {
			return fmt.Errorf("lp: %w: job %d holds %g devices; give a positive number", ErrInvalid, m, p.Sizes[m])
		}
	}
	return nil
}

// Solve returns the optimum; identical jobs get identical shares. It fails with [ErrInvalid], with [ErrNumerical] if no
// gap of 1e-8 is proven, or with the error of ctx.
func (p *MaxMin) Solve(ctx context.Context) (*Shares, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	c := newPricing(p)
	c.start()
	if err := c.improve(ctx); err != nil {
		return nil, err
	}
	s := c.shares()
	c.release()
	if s.Gap > maxMinAccept {
		return nil, &NumericalError{Residuals: Residuals{Gap: s.Gap}, Tolerance: maxMinAccept, Iterations: s.Points}
	}
	return s, nil
}

// shares returns the mixture, cut to capacities.
func (c *pricing) shares() *Shares {
	x := make([]float64, c.jobs*c.types)
	weights := c.mix.weights()
	for i, p := range c.points[:len(weights)] {
		w := weights[i]
		if w == 0 || p.prices == nil {
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
	s.Gap = math.Max(0, c.points[c.best].t-s.Level) / math.Max(1, s.Level)
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
	for k, n := range c.capacity {
		use := 0.0
		for m, size := range c.sizes {
			use += size * x[m*c.types+k]
		}
		if use > n {
			for m := range c.jobs {
				x[m*c.types+k] *= n / use
			}
		}
	}
}

// level returns the least level of the jobs at shares x.
func (c *pricing) level(x []float64) float64 {
	least := math.Inf(1)
	for m := range c.jobs {
		rate := 0.0
		for k := range c.types {
			rate += c.rates[m*c.types+k] * x[m*c.types+k]
		}
		least = math.Min(least, rate)
	}
	return least
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
