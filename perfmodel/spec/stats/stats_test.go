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
