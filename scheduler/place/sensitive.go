package place

import (
	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name: "sensitive",
		Doc:  "consolidated for jobs predicted to be more than a tenth slower on more nodes, packed for all others",
		New:  func() scheduler.Placer { return sensitive{packed{byNode{fullest}}} },
	})
}

// sensitive consolidates only jobs that profit: the idea of Tiresias (Gu et al., NSDI 2019,
// section 3.3) with the predicted speed in place of the skew of tensor sizes.
// Jobs of unknown speed are packed.
type sensitive struct{ packed }

// worthWaiting is the share of its speed that a job may lose on more nodes before
// it waits for fewer.
const worthWaiting = 0.1

// Choose drops the candidates on many nodes that lose more than worthWaiting of the
// speed on the fewest nodes.
func (sensitive) Choose(ways []scheduler.Candidate) []scheduler.Candidate {
	best := map[alike]float64{} // rate on the fewest nodes
	for _, w := range consolidate(ways, func(scheduler.Candidate) bool { return true }) {
		best[of(w)] = max(best[of(w)], w.Rate)
	}
	return consolidate(ways, func(w scheduler.Candidate) bool { return w.Rate < (1-worthWaiting)*best[of(w)] })
}
