package loss

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// MinPoints is the least number of losses for a fit of the three parameters.
const MinPoints = 3

// Fit returns the curve closest to losses; losses[k-1] is the loss after k intervals. For each of several B2 a
// weighted regression of 1/(l - B2) on k gives B0 and B1. Its weights, (l - B2)^4, turn its errors into errors of l.
// The B2 with the least sum of squared errors wins. ok is false with too few losses or without a decrease.
//
// A loss outside the range of its two neighbours is first set to the nearer one. Optimus (section 3.1) takes their
// mean, which carries a single outlier into its neighbours.
func Fit(losses []float64) (best Curve, ok bool) {
	if len(losses) < MinPoints {
		return Curve{}, false
	}
	f := newFitter(smooth(losses))
	least := math.Inf(1)
	lo, hi := 0.0, f.lowest
	for range refinements {
		step := (hi - lo) / candidates
		at := best.B2
		for i := range candidates {
			c, sum := f.with(lo + step*float64(i))
			if sum < least {
				best, least, at, ok = c, sum, lo+step*float64(i), true
			}
		}
		lo, hi = max(at-step, 0), min(at+step, f.lowest)
	}
	return best, ok
}

// Fit tries this many values of B2, then as many around the best, and so on, to less than 1e-5 of the lowest loss.
const candidates, refinements = 32, 4

// smooth replaces losses outside the range of their neighbours.
func smooth(losses []float64) []float64 {
	out := slices.Clone(losses)
	for i := 1; i < len(losses)-1; i++ {
		a, b := losses[i-1], losses[i+1]
		out[i] = min(max(losses[i], min(a, b)), max(a, b))
	}
	return out
}

// fitter is the working state of a fit.
type fitter struct {
	losses  []float64
	lowest  float64
	k       []float64
	y, wght []float64 // of the regression
}

func newFitter(losses []float64) *fitter {
	f := &fitter{losses: losses, lowest: math.Inf(1), k: make([]float64, len(losses)),
		y: make([]float64, len(losses)), wght: make([]float64, len(losses))}
	for i, l := range losses {
		f.k[i], f.lowest = float64(i+1), min(f.lowest, l)
	}
	return f
}

// with returns the best curve for a B2 below all losses, and its sum of squared errors, +Inf if no curve falls.
func (f *fitter) with(b2 float64) (Curve, float64) {
	for i, l := range f.losses {
		above := l - b2
		f.y[i], f.wght[i] = 1/above, above*above*above*above
	}
	c := Curve{B2: b2}
	c.B1, c.B0 = stat.LinearRegression(f.k, f.y, f.wght, false)
	if !(c.B0 > 0 && c.B1 > 0) || math.IsInf(c.B0+c.B1, 0) {
		return c, math.Inf(1)
	}
	sum := 0.0
	for i, l := range f.losses {
		d := c.At(f.k[i]) - l
		sum += d * d
	}
	return c, sum
}
