package family

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// scatter is by how much rows are off what was expected of them left out, over
// how much they were expected to be, and so by how much intervals nearby are
// widened or narrowed: rows of one kind repeat within a percent, of another move
// with every release of the software. The mean square near p is
//
//	s²(p) = (scatterLike·z̄² + Σ k(p, i)·z_i²) / (scatterLike + Σ k(p, i))     k = exp(-distance)
//
// Source: locally weighted conformal prediction, Lei, G'Sell, Rinaldo, Tibshirani
// and Wasserman, "Distribution-Free Predictive Inference for Regression", JASA
// 2018, section 5.2. Differs: errors are over a standard deviation first, and
// shrunk to what is typical.
type scatter struct {
	at      []point
	z2      []float64 // squared, at most scatterWild²
	typical float64   // mean of z2
}

const (
	scatterLike = 1.0 // rows that what is typical counts as
	scatterWild = 3.0 // larger ones say no more
)

// newScatter takes left-out errors e of rows at the given places, of which
// variances v were expected.
func newScatter(at []point, e, v []float64) *scatter {
	s := &scatter{at: at, z2: make([]float64, len(e))}
	for i := range e {
		s.z2[i] = min(e[i]*e[i]/v[i], scatterWild*scatterWild)
	}
	s.average()
	return s
}

// average works out what is typical.
func (s *scatter) average() {
	const least = 0.1 // rows that agree better agree by chance
	for _, z := range s.z2 {
		s.typical += z / float64(len(s.z2))
	}
	s.typical = max(s.typical, least)
}

// near returns s(p), row without left out.
func (s *scatter) near(p *point, without int) float64 {
	sum, weight := scatterLike*s.typical, scatterLike
	for i := range s.at {
		if i != without {
			k := math.Exp(-p.distance(&s.at[i]))
			sum, weight = sum+k*s.z2[i], weight+k
		}
	}
	return math.Sqrt(sum / weight)
}

// scatterShare is the share of left-out rows that are to be inside, for nine in ten
// asked ones: a row left out has its neighbours further away than one between
// rows.
const scatterShare = 0.85

// quantile returns what scatterShare of the rows are off at most, over what is
// expected with s(p) of all others.
func (s *scatter) quantile() float64 {
	z := make([]float64, len(s.at))
	for i := range z {
		z[i] = math.Sqrt(s.z2[i]) / s.near(&s.at[i], i)
	}
	slices.Sort(z)
	return quantileOf(z, scatterShare)
}

// quantileOf estimates quantile p of what sorted are a sample of: the mean of
// the order statistics, each weighed by how likely it is that quantile. Source:
// Harrell and Davis, "A new distribution-free quantile estimator", Biometrika
// 1982, equation 1.
func quantileOf(sorted []float64, p float64) (q float64) {
	n := float64(len(sorted))
	below := 0.0
	for i, v := range sorted {
		upTo := mathext.RegIncBeta(p*(n+1), (1-p)*(n+1), float64(i+1)/n)
		q, below = q+(upTo-below)*v, upTo
	}
	return q
}
