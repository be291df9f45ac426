package stats

import "slices"

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
