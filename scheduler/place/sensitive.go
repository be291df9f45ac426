package place

import (
	"github.com/pacer-ml/pacer/scheduler"
)

var sensitiveInfo = Info{
	Name: "sensitive",
	Doc:  "consolidated for jobs predicted to be more than a tenth slower on more nodes, packed for all others",
	New:  func() scheduler.Placer { return sensitive{packed{byNode{fullest}}} },
}

// sensitive consolidates only jobs that profit, as in Tiresias (Gu et al., NSDI 2019,
// section 3.3), but by predicted speed instead of the skew of tensor sizes. Jobs of unknown
// speed are packed.
type sensitive struct{ packed }

// worthWaiting is the largest share of its speed that a job may lose on more nodes. If it
// would lose more, it waits for fewer nodes.
const worthWaiting = 0.1

// Choose leaves out candidates on more than the fewest nodes that lose more than
// worthWaiting of the speed there.
func (sensitive) Choose(all []scheduler.Candidate) []scheduler.Candidate {
	best := map[alike]float64{} // rate on the fewest nodes
	for _, w := range consolidate(all, func(scheduler.Candidate) bool { return true }) {
		best[of(w)] = max(best[of(w)], w.Rate)
	}
	return consolidate(all, func(w scheduler.Candidate) bool { return w.Rate < (1-worthWaiting)*best[of(w)] })
}
