package blox

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
)

// WholeDemand returns the placer scattered with Blox's layout: each node in order
// gives up to the whole demand, and the sum must be exact.
func WholeDemand() scheduler.Placer { return wholeDemand{place.Scattered()} }

type wholeDemand struct{ scheduler.Placer }

// Lay takes up to the whole demand of each node, so that 4 devices never fit on
// nodes with 3 and 2 free.
func (wholeDemand) Lay(free *scheduler.Inventory, group, devices int) (spec.Shape, bool) {
	if devices < 1 || group < 0 || free.FreeIn(group) < devices {
		return spec.Shape{}, false
	}
	var counts []int
	got := 0
	for node, end := free.Nodes(group); node < end && got < devices; node++ {
		if n := min(free.Free[node], devices); n > 0 {
			counts = append(counts, n)
			got += n
		}
	}
	return spec.NewShape(counts...), got == devices
}
