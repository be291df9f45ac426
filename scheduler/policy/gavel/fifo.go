package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// FIFO is the registry entry of policy gavel-fifo.
var FIFO = policy.Info{
	Name:    "gavel-fifo",
	Doc:     "first come, first served, each job on the fastest type with room; moves jobs to faster devices that become free; a job that fits nowhere blocks all jobs behind it",
	Options: rounding,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		return Rounds(d, Objective{Fractions: fastestInOrder, Strict: true})
	},
}

// fastestInOrder gives each job, by arrival, all of its time on the fastest type with
// devices left, and stops at the first job that fits nowhere: heterogeneity-aware FIFO
// (Gavel, table 1). Ties go to the type first by name, as in Gavel.
func fastestInOrder(_ context.Context, s *Shares) error {
	left := append([]float64(nil), s.Devices...)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		best := -1
		for k, w := range j.Candidates {
			if left[w.Group] >= float64(w.Devices) && (best < 0 || w.Rate > j.Candidates[best].Rate) {
				best = k
			}
		}
		if best < 0 && len(j.Candidates) > 0 && !s.skips(j, left) {
			return nil
		}
		if best >= 0 {
			j.X[best] = 1
			left[j.Candidates[best].Group] -= float64(j.Candidates[best].Devices)
		}
	}
	return nil
}

// skips reports whether j, which fits nowhere, does not block the jobs behind it. With
// Variant.ZerosCount that is so if a type that j cannot run on has room; j takes that room.
func (s *Shares) skips(j *Share, left []float64) bool {
	for g := range left {
		if s.rules.ZerosCount && left[g] >= j.Devices() {
			left[g] -= j.Devices()
			return true
		}
	}
	return false
}
