package gp

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Scatter holds the ratios of left-out errors to their expected standard deviations. Intervals nearby are
// scaled by them: similar rows of one kind repeat within a percent, those of another vary with every software
// release. The mean square near p is
//
//	s²(p) = (scatterPriorRows·z̄² + Σ k(p, i)·z_i²) / (scatterPriorRows + Σ k(p, i))     k = exp(-distance)
//
// Source: locally weighted conformal prediction, Lei, G'Sell, Rinaldo, Tibshirani and Wasserman,
// "Distribution-Free Predictive Inference for Regression", JASA 2018, section 5.2. Differs: errors are first
// divided by a standard deviation, and shrunk towards their mean square.
type Scatter struct {
	At      []Point
	Z2      []float64 // squared ratios, at most scatterMax²
	typical float64   // mean of Z2
}

const (
	scatterPriorRows = 1.0 // weight of the mean square, in rows
	scatterMax       = 3.0 // larger ratios are reduced to this
)

// SquaredRatios returns those of left-out errors e with expected variances v.
func SquaredRatios(e, v []float64) []float64 {
	z2 := make([]float64, len(e))
	for i := range e {
		z2[i] = min(e[i]*e[i]/v[i], scatterMax*scatterMax)
	}
	return z2
}

// NewScatter returns the scatter of rows at the given points with squared ratios z2. It keeps both.
//
// Before any row the mean square is 1, with the weight of 1/(2·siteSD²) rows: so many determine a variance as well as its
// prior, which has a standard deviation of 2·siteSD of the logarithm (Gelman et al., "Bayesian Data Analysis", 2013,
// section 3.3).
func NewScatter(at []Point, z2 []float64) *Scatter {
	const weight = 1 / (2 * siteSD * siteSD)
	sum := weight
	for _, z := range z2 {
		sum += z
	}
	return &Scatter{At: at, Z2: z2, typical: sum / (weight + float64(len(z2)))}
}

// Near returns s(p) without row without; -1 means all rows.
func (s *Scatter) Near(p *Point, without int) float64 {
	sum, weight := scatterPriorRows*s.typical, scatterPriorRows
	for i := range s.At {
		if i != without {
			k := math.Exp(-p.Distance(&s.At[i]))
			sum, weight = sum+k*s.Z2[i], weight+k
		}
	}
	return math.Sqrt(sum / weight)
}

// Quantile returns the ratio of half width to standard deviation that covers nine in ten new rows: the 0.9·(n+1)/n
// quantile of the n ratios, or the largest if n < 9 (0 without rows), each divided by s(p) of the other rows. Of more than ExactRows rows it
// takes that many, evenly spaced. The error is that of ctx.
//
// Source: Lei et al. 2018, section 2.2 (split conformal prediction). Differs: the rows are left out one by one.
func (s *Scatter) Quantile(ctx context.Context) (float64, error) {
	z := make([]float64, min(len(s.At), ExactRows))
	for k := range z {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		i := k * len(s.At) / len(z)
		z[k] = math.Sqrt(s.Z2[i]) / s.Near(&s.At[i], i)
	}
	slices.Sort(z)
	if len(z) == 0 {
		return 0, nil
	}
	n := float64(len(z))
	if p := 0.9 * (n + 1) / n; p < 1 {
		return quantileOf(z, p), nil
	}
	return z[len(z)-1], nil
}

// quantileOf estimates quantile p of the distribution of a sorted sample: the mean of the order statistics,
// each weighted by the probability that it is that quantile. Source: Harrell and Davis, "A new
// distribution-free quantile estimator", Biometrika 1982, equation 1.
func quantileOf(sorted []float64, p float64) (q float64) {
	n := float64(len(sorted))
	below := 0.0
	for i, v := range sorted {
		upTo := mathext.RegIncBeta(p*(n+1), (1-p)*(n+1), float64(i+1)/n)
		q, below = q+(upTo-below)*v, upTo
	}
	return q
}
