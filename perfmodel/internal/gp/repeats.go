package gp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Repeats are the runs of one configuration at different times: ln T of each less its mean, in ascending order. They
// show the noise of runs apart from what a model leaves unexplained.
type Repeats []float64

// NewRepeats returns those of at least two step times.
func NewRepeats(seconds []float64) Repeats {
	r := make(Repeats, len(seconds))
	for i, s := range seconds {
		r[i] = math.Log(s)
	}
	slices.Sort(r)
	floats.AddConst(-floats.Sum(r)/float64(len(r)), r)
	return r
}

// repeatFreedom is the degrees of freedom of the distribution of a run: one under another set-up, which is off by a
// factor of two, must not outweigh all rows.
const repeatFreedom = 4

// logDensity returns the log density of the runs, up to a constant, if single runs have a standard deviation: that of
// Student's t distributions. The n runs have n-1 differences, so that each counts (n-1)/n times,
//
//	(n-1)/n · Σ (-ln sd - (f+1)/2·ln(1 + n/(n-1)·y²/(f·sd²)))     y  of each run
//	                                                               f  repeatFreedom
//
// Source: Lange, Little and Taylor, "Robust Statistical Modeling Using the t Distribution", JASA 1989, equation 1.
func (r Repeats) logDensity(sd float64) (sum float64) {
	n := float64(len(r))
	for _, y := range r {
		sum += (n - 1) / n * (-math.Log(sd) - (repeatFreedom+1)/2.0*math.Log1p(n/(n-1)*y*y/(repeatFreedom*sd*sd)))
	}
	return sum
}

// slope returns the derivative of logDensity by ln sd.
func (r Repeats) slope(sd float64) (sum float64) {
	n := float64(len(r))
	for _, y := range r {
		y2 := n / (n - 1) * y * y
		sum += (n - 1) / n * ((repeatFreedom+1)*y2/(repeatFreedom*sd*sd+y2) - 1)
	}
	return sum
}
