package place

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

var packedInfo = Info{
	Name: "packed",
	Doc:  "uses the fewest nodes, and of these the fullest with room, so that whole nodes stay empty",
	New:  func() scheduler.Placer { return packed{byNode{fullest}} },
}

// packed is best fit: the node with the fewest free devices that suffice.
type packed struct{ byNode }

// Lay fills the emptiest nodes first, which uses the fewest nodes possible.
func (packed) Lay(free *scheduler.Inventory, group, devices int) (spec.Shape, bool) {
	return lay(free, group, devices, emptiest, func(_, left, has int) int { return min(left, has) })
}
