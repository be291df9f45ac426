package stats

import (
	"math"
	"slices"
)

// MedianHalfWidth returns half the width of the 95 % interval of the median of v, as a fraction of the median; 0 for fewer
// than six values. The ends are order statistics: the number of independent values below their median is binomial with
// p = 1/2 (Conover, Practical Nonparametric Statistics, 1999, section 3.2).
func MedianHalfWidth(v []float64) float64 {
	n := len(v)
	low := medianLowRank(n)
	if low == 0 {
		return 0
	}
	ordered := slices.Sorted(slices.Values(v))
	return (ordered[n-low] - ordered[low-1]) / 2 / Median(ordered)
}

// medianLowRank returns the rank, from 1, of the lower end of that interval: the largest l with
// P(Bin(n, 1/2) <= l-1) <= 0.025, 0 if there is none.
func medianLowRank(n int) int {
	const exact, z = 1000, 1.959964 // beyond exact values the normal approximation; 2^-1000 is a normal float64
	if n > exact {
		return int(float64(n+1)/2 - z*math.Sqrt(float64(n))/2)
	}
	below, term, rank := 0.0, math.Pow(0.5, float64(n)), 0 // P(Bin < rank), P(Bin = rank)
	for below+term <= 0.025 && rank <= n {
		below += term
		term *= float64(n-rank) / float64(rank+1)
		rank++
	}
	return rank
}
