package place

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

var spreadInfo = Info{
	Name: "spread",
	Doc:  "places each part on the emptiest node, so that jobs share nodes as little as possible",
	New:  func() scheduler.Placer { return spread{byNode{emptiest}} },
}

// spread is worst fit: the node with the most free devices.
type spread struct{ byNode }

// Lay distributes the devices evenly over all nodes with free devices. A node with fewer
// free devices than the even share gives all of them.
func (spread) Lay(free *scheduler.Inventory, group, devices int) (spec.Shape, bool) {
	return lay(free, group, devices, fullest, func(nodes, left, has int) int {
		return min(has, (left+nodes-1)/nodes)
	})
}
