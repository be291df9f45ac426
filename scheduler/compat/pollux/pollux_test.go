package pollux

import (
	"testing"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Halves round to the even second.
func TestWholeSeconds(t *testing.T) {
	var r sim.Rules
	WholeSeconds(&r)
	for sec, want := range map[float64]float64{0.4: 0, 0.5: 0, 1.5: 2, 2.5: 2, 2.6: 3} {
		if got := r.RoundSec(sec); got != want {
			t.Errorf("%g s end at %g, want %g", sec, got, want)
		}
	}
}
