package gavel

import (
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy/gavel"
)

// Rounds are the settings of Gavel's round mechanism.
type Rounds struct {
	Least         time.Duration // between two computations of the fractions
	NewcomersWait bool          // a job without fractions takes devices that are left and does not run
}

// Throttle is Rounds.Least of the simulator.
const Throttle = 1920 * time.Second

// TypeByType turns fractions of time into rounds type by type, as r says.
func TypeByType(g *gavel.Variant, r *Rounds) {
	g.Rounds = func(a *gavel.Allocation) scheduler.Policy { return newTypeByType(a, r) }
	g.PairRounds = func(p *gavel.Pairs, seed uint64) scheduler.Policy { return newPairRounds(p, seed, r) }
}

// SummedGain keeps two jobs together where the parts of their speeds that they keep
// sum to 1 or more over all types of devices: they may make a third of what they could.
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
