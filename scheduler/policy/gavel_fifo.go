package policy

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name:    "gavel-fifo",
		Doc:     "first come first served, each on the fastest type that has room, moving up when there is; who fits nowhere holds up all behind",
		Options: rounding,
		New: func(d Deps) (scheduler.Policy, error) {
			return Rounds(d, Objective{Fractions: fastestInOrder, Strict: true})
		},
	})
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
		if s.quirks.ZerosCount && left[g] >= j.Devices() {
			left[g] -= j.Devices()
			return true
		}
	}
	return false
}
