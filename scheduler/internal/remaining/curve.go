package remaining

import "math"

// A curve is a distribution of the total service S of jobs, in device-seconds. It is piecewise Pareto: between two ends
// of octaves, service falls off with the power alpha of that octave,
//
//	P(S > b | S > a) = (a/b)^alpha    for unit·2^k <= a <= b <= unit·2^(k+1)
//
// where 2^-alpha is the share of jobs that survive octave k. The last octave has no end.
type curve [octaves]float64

const (
	octaves = 40
	unit    = 60.0 // device-seconds: a minute of one device. Less service does not tell jobs apart
)

// octave returns the octave of a service of at least unit.
func octave(service float64) int { return min(math.Ilogb(service/unit), octaves-1) }

// prior is the curve without any history: half of the jobs that receive some service end before they received twice of
// it. Its cost is the attained service, so jobs run in order of least attained service.
var prior = func() (c curve) {
	for k := range c {
		c[k] = 1
	}
	return c
}()

// cost returns the device-seconds that a job of attained service a costs per completion under the best quantum, the
// reciprocal of its Gittins index
//
//	G(a) = sup over D > 0 of P(S-a <= D | S > a) / E[min(S-a, D) | S > a]
//
// Within an octave the hazard alpha/t falls with t. So the best quantum is infinitesimal, with a cost of a/alpha, or ends
// in a later octave, where its end is the point at which one more second costs as much as all seconds before it on
// average.
//
// Source: Gittins, J. R. Stat. Soc. B 41(2), 1979; Aalto, Ayesta and Righter, On the Gittins index in the M/G/1 queue,
// Queueing Systems 63, 2009, equation 1; in two dimensions Gu et al., Tiresias, NSDI 2019, section 3.2.
func (c *curve) cost(a float64) float64 {
	a = max(a, unit)
	best := a / c[octave(a)]
	survive, spent := 1.0, 0.0 // P(S > from | S > a) and E[min(S-a, from-a)]
	from := a
	for k := octave(a); k < octaves-1; k++ {
		to := unit * math.Ldexp(1, k+1)
		// Later in the octave the hazard falls, so that a quantum that ends in it is no better than one that ends
		// where it begins, or at the point where cost equals t/alpha, which is at most the cost at either end.
		best = min(best, c.within(k, survive, spent, from, to))
		spent += survive * area(c[k], from, to)
		survive *= math.Pow(from/to, c[k])
		from = to
	}
	return best
}

// within returns the least cost of quanta that end between from and to in octave k. The cost falls while the hazard
// exceeds its reciprocal and rises afterwards, so that the least is found by bisection.
func (c *curve) within(k int, survive, spent, from, to float64) float64 {
	cost := func(t float64) float64 {
		ended := 1 - survive*math.Pow(from/t, c[k])
		if ended <= 0 {
			return math.Inf(1)
		}
		return (spent + survive*area(c[k], from, t)) / ended
	}
	falls := func(t float64) bool { return t/c[k] < cost(t) }
	switch {
	case !falls(from):
		return cost(from)
	case falls(to):
		return cost(to)
	}
	for range 20 {
		if mid := math.Sqrt(from * to); falls(mid) {
			from, survive, spent = mid, survive*math.Pow(from/mid, c[k]), spent+survive*area(c[k], from, mid)
		} else {
			to = mid
		}
	}
	return cost(from)
}

// area is the integral over t from a to b of P(S > t | S > a) in an octave of power alpha.
func area(alpha, a, b float64) float64 {
	if math.Abs(alpha-1) < 1e-9 {
		return a * math.Log(b/a)
	}
	return a * (1 - math.Pow(b/a, 1-alpha)) / (alpha - 1)
}
