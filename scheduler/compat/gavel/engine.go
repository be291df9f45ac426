package gavel

import (
	"math"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Barrier makes a round last until every job in it has run for as long or is done.
func Barrier(r *sim.Rules) { r.Lockstep = &sim.Lockstep{} }

// WholeSteps lets a job make only the whole steps of its devices that fit in a round
// with a barrier.
func WholeSteps(r *sim.Rules) {
	if r.Lockstep != nil {
		r.Lockstep.Steps = wholeSteps
	}
}

// wholeSteps rounds fit, the steps of a job that fit in a round, down to a multiple of
// 1/n, where n is its number of devices. If that is 0 it returns fit, since the job would
// never end otherwise. The tolerance is that of float64 arithmetic.
func wholeSteps(fit float64, n int) float64 {
	if whole := math.Floor(fit*float64(n)*(1+1e-12)) / float64(n); whole > 0 {
		return whole
	}
	return fit
}
