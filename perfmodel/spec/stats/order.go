package stats

import (
	"math"
	"slices"
)

// Normal90 is half the width of the 90 % interval of a normal distribution, in standard deviations.
const Normal90 = 1.645

// Median returns the median of v: the mean of the middle two for an even number of values, 0 for none. It does
// not change v.
func Median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// NearestRank returns quantile p of at least one ascending value: the smallest value such that at least the share p
// of the values is not larger.
func NearestRank[T any](ascending []T, p float64) T {
	// Subtracting 1e-9 corrects rounding, if p*n is a little above an integer.
	rank := int(math.Ceil(p*float64(len(ascending)) - 1e-9))
	return ascending[min(max(rank, 1), len(ascending))-1]
}
