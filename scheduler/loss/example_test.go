package loss_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/scheduler/loss"
)

// Fit finds the curve behind 40 logged losses, and when it falls by at most 0.001 from
// one value to the next.
func ExampleFit() {
	truth := loss.Curve{B0: 0.5, B1: 2, B2: 0.5}
	var losses []float64
	for k := range 40 {
		losses = append(losses, truth.At(float64(k+1)))
	}
	fitted, ok := loss.Fit(losses)
	fmt.Printf("%v %.3f %.3f\n", ok, fitted.At(0), fitted.At(1000))
	fmt.Printf("converged after %.0f\n", fitted.Converged(0.001))
	// Output:
	// true 1.000 0.502
	// converged after 40
}
