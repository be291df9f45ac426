package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var FIFO = policy.Info{
	Name:    "gavel-fifo",
	Doc:     "first come first served, each job on the fastest type with room, moved to faster devices when they are free; a job that fits nowhere blocks all jobs behind it",
	Options: rounding,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		return Rounds(d, Objective{Fractions: fastestInOrder, Strict: true})
	},
}

// fastestInOrder gives all of its time to each job by arrival on the fastest
// type with room left, up to the first that finds none: FIFO of Gavel
// (Narayanan et al., OSDI 2020, table 1) where it knows the throughputs. Equal
// types go by name, as there.
func fastestInOrder(_ context.Context, s *Shares) error {
	left := append([]float64(nil), s.Devices...)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		best := -1
		for k, w := range j.Ways {
			if left[w.Group] >= float64(w.Devices) && (best < 0 || w.Rate > j.Ways[best].Rate) {
				best = k
			}
		}
		if best < 0 && len(j.Ways) > 0 && !s.passesOver(j, left) {
			return nil
		}
		if best >= 0 {
			j.X[best] = 1
			left[j.Ways[best].Group] -= float64(j.Ways[best].Devices)
		}
	}
	return nil
}

// passesOver reports whether j does not hold up those behind though none of its
// types has room: with the quirk zeros-count, where one has on which it does not
// run. It takes that room.
func (s *Shares) passesOver(j *Share, left []float64) bool {
	for g := range left {
		if s.rules.ZerosCount && left[g] >= j.Devices() {
			left[g] -= j.Devices()
			return true
		}
	}
	return false
}
