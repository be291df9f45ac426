package stats

import (
	"math"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{
		{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}, {[]float64{9, 1, 2, 4}, 3},
		{[]float64{math.Inf(1), 1, 2}, 2}, {[]float64{math.MaxFloat64}, math.MaxFloat64},
	} {
		was := slices.Clone(c.v)
		if got := Median(c.v); got != c.want {
			t.Errorf("median of %v is %g, want %g", was, got, c.want)
		}
		if !slices.Equal(c.v, was) {
			t.Errorf("%v became %v", was, c.v)
		}
	}
}

// TestNearestRank: p99 of 1 to n is 0.99 n, rounded up.
func TestNearestRank(t *testing.T) {
	var v []int
	for n := 1; n <= 400; n++ {
		v = append(v, n)
		want := (99*n + 99) / 100
		if got := NearestRank(v, 0.99); got != want {
			t.Errorf("p99 of 1..%d is %d, want %d", n, got, want)
		}
	}
	if NearestRank(v, 0) != 1 || NearestRank(v, 1) != 400 {
		t.Errorf("quantiles 0 and 1 are %d and %d, want the least and the largest", NearestRank(v, 0), NearestRank(v, 1))
	}
}
