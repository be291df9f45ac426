package calibrate

import (
	"slices"

	"github.com/pacer-ml/pacer/cmd/internal/nextplans"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/profiler"
)

const (
	leastHeldOut = 3  // points held out if the space has twice as many
	mostHeldOut  = 16 // more hardly change the mean error
)

// heldOutCount is the number of points of a space to hold out: a third, within the limits above, and never
// more than half.
func heldOutCount(points int) int {
	return min(max(points/3, min(leastHeldOut, points/2)), mostHeldOut)
}

// draw returns the points to hold out: at random, from every model in turn, all ranks of a plan together. The draw depends
// on the seed and the space alone.
func draw(points []profiler.Point, seed uint64) map[profiler.Identity]bool {
	byKey := map[spec.Key][]spec.Config{}
	var keys []spec.Key
	plans := wholePlans(points)
	for _, c := range plans {
		k := c.Key()
		if byKey[k] == nil {
			keys = append(keys, k)
		}
		byKey[k] = append(byKey[k], c)
	}
	slices.SortFunc(keys, perfmodel.CompareKeys)
	groups := make([][]spec.Config, len(keys))
	for i, k := range keys {
		groups[i] = byKey[k]
		rng := stats.Stream(seed, "held out "+k.String())
		rng.Shuffle(len(groups[i]), func(a, b int) { groups[i][a], groups[i][b] = groups[i][b], groups[i][a] })
	}
	held := map[profiler.Identity]bool{}
	for _, c := range nextplans.Alternate(groups)[:heldOutCount(len(plans))] {
		held[identity(c)] = true
	}
	out := map[profiler.Identity]bool{}
	for _, p := range points {
		if held[identity(allRanks(p.Config))] {
			out[identity(p.Config)] = true
		}
	}
	return out
}

// identity identifies the point of c. The CPUs of its devices do not count: the machine may give other ones to
// the next session.
func identity(c spec.Config) profiler.Identity {
	c.Shape.CPUs = 0
	return profiler.IdentityOf(c)
}
