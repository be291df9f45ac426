package nn

import (
	"errors"
	"fmt"
	"math"
)

// ErrDiverged reports that a loss or gradient is not finite, so that training cannot continue.
var ErrDiverged = errors.New("training has diverged")

// Adam updates parameters against their gradients with a step size per parameter (Kingma, Ba, ICLR 2015, algorithm 1).
// The zero value with a Rate is ready.
type Adam struct {
	Rate float64 // step size
	// Clip limits the length of a gradient; 0 is no limit.
	Clip float64

	steps        int
	first, other []float32 // moving means of gradients and of their squares
}

// Decay rates of the moving means, and the constant that keeps the quotient finite, as recommended by Kingma and Ba.
const (
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

// Step applies one update. If a gradient is not finite, it changes nothing and returns an error that wraps
// ErrDiverged.
func (a *Adam) Step(params, grad []float32) error {
	scale, err := a.scale(grad)
	if err != nil {
		return err
	}
	if a.first == nil {
		a.first, a.other = make([]float32, len(params)), make([]float32, len(params))
	}
	a.steps++
	bias1, bias2 := 1-math.Pow(beta1, float64(a.steps)), 1-math.Pow(beta2, float64(a.steps))
	rate, root := float32(a.Rate/bias1), float32(1/math.Sqrt(bias2))
	first, other := a.first[:len(params)], a.other[:len(params)]
	for i, g := range grad[:len(params)] {
		g *= scale
		m := beta1*first[i] + (1-beta1)*g
		v := beta2*other[i] + (1-beta2)*g*g
		first[i], other[i] = m, v
		params[i] -= rate * m / (root*float32(math.Sqrt(float64(v))) + epsilon)
	}
	return nil
}

// scale returns the factor that clips the gradient.
func (a *Adam) scale(grad []float32) (float32, error) {
	sum := float32(0)
	for _, g := range grad {
		sum += g * g
	}
	norm := math.Sqrt(float64(sum))
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, fmt.Errorf("nn: a gradient of length %g: %w", norm, ErrDiverged)
	}
	if a.Clip > 0 && norm > a.Clip {
		return float32(a.Clip / norm), nil
	}
	return 1, nil
}
