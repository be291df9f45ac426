package gavel

import (
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy/gavel"
)

// Rounds are the settings of Gavel's round mechanism.
type Rounds struct {
	Least         time.Duration // least time between two computations of the fractions
	NewcomersWait bool          // a job without fractions occupies spare devices, but does not run
}

// Throttle is Rounds.Least of the simulator.
const Throttle = 1920 * time.Second

// TypeByType installs the round mechanism of Gavel's simulator with settings r.
func TypeByType(g *gavel.Variant, r *Rounds) {
	g.Rounds = func(a *gavel.Allocation) scheduler.Policy { return newTypeByType(a, r) }
	g.PairRounds = func(p *gavel.Pairs, seed uint64) scheduler.Policy { return newPairRounds(p, seed, r) }
}

// SummedGain keeps two jobs together if their relative speeds add up to 1 or more, summed
// over all types of devices, even if that is little on their own type.
func SummedGain(g *gavel.Variant) {
	g.Pays = func(gain func(group int) (float64, error), _, groups int) (bool, error) {
		sum := 0.0
		for group := range groups {
			v, err := gain(group)
			if err != nil {
				return false, err
			}
			sum += v
		}
		return sum >= 1, nil
	}
}
