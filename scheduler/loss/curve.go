package loss

import "math"

// Curve is a training loss relative to the initial loss, after k equal intervals of training:
//
//	l(k) = 1/(B0*k + B1) + B2
//
//	B0  rate of decrease, above 0
//	B1  1/(l(0) - B2), above 0
//	B2  limit, 0 or more
//
// Stochastic gradient descent converges at this rate, 1/k.
//
// Source: Peng et al., "Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters", EuroSys 2018,
// section 3.1, equation 1.
type Curve struct{ B0, B1, B2 float64 }

// At returns l(k), k >= 0.
func (c Curve) At(k float64) float64 { return 1/(c.B0*k+c.B1) + c.B2 }

// Falls returns the decrease of the loss from k to k+1.
func (c Curve) Falls(k float64) float64 { return c.At(k) - c.At(k+1) }

// Converged returns the first k >= 0 with a decrease of at most least per interval; least must be above 0.
func (c Curve) Converged(least float64) float64 {
	x := (math.Sqrt(c.B0*c.B0+4*c.B0/least) - c.B0) / 2 // solves B0/(x*(x+B0)) = least
	return max((x-c.B1)/c.B0, 0)
}
