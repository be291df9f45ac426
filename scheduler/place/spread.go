package place

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name: "spread",
		Doc:  "each count on the emptiest node, so that jobs share nodes as little as possible",
		New:  func() scheduler.Placer { return spread{byNode{emptiest}} },
	})
}

// spread is worst fit: the node with the most free devices.
type spread struct{ byNode }

// Lay deals the devices evenly over all nodes that have any free: the fullest
// give what they have, the others share the rest.
func (spread) Lay(free *scheduler.Inventory, group, devices int) (spec.Shape, bool) {
	return lay(free, group, devices, fullest, func(nodes, left, has int) int {
		return min(has, (left+nodes-1)/nodes)
	})
}
