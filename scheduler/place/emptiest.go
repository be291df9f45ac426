package place

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

var emptiestInfo = Info{
	Name: "emptiest",
	Doc:  "fills the node with the most free devices, then the next one",
	New:  func() scheduler.Placer { return drain{byNode{emptiest}} },
}

// drain is worst fit node by node.
type drain struct{ byNode }

// Lay is that of packed.
func (drain) Lay(free *scheduler.Inventory, group, devices int) (spec.Shape, bool) {
	return packed{}.Lay(free, group, devices)
}
