package stats

import (
	"math"
	"testing"
)

// The ranks are those of Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, appendix A.
func TestMedianLowRank(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 12: 3, 20: 6, 30: 10, 50: 18, 70: 27, 1001: 469} {
		if got := medianLowRank(n); got != want {
			t.Errorf("%d values: rank %d, want %d", n, got, want)
		}
	}
}

func TestMedianHalfWidth(t *testing.T) {
	if got := MedianHalfWidth([]float64{6, 1, 5, 2, 4, 3}); math.Abs(got-2.5/3.5) > 1e-12 {
		t.Errorf("got %g", got)
	}
	if got := MedianHalfWidth([]float64{1, 2, 3, 4, 5}); got != 0 {
		t.Errorf("five values: %g", got)
	}
}
