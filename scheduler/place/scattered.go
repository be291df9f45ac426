package place

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

var scatteredInfo = Info{
	Name: "scattered",
	Doc:  "first fit: takes the free devices of each node in order, on any number of nodes",
	New:  Scattered,
}

// Scattered returns the placer "scattered".
func Scattered() scheduler.Placer { return scattered{byNode{lowest}} }

// scattered is first fit over nodes by their number.
type scattered struct{ byNode }

func (p scattered) Lay(free *scheduler.Inventory, group, devices int) (spec.Shape, bool) {
	if devices < 1 || group < 0 || free.FreeIn(group) < devices {
		return spec.Shape{}, false
	}
	var counts []int
	got := 0
	first, end := free.Nodes(group)
	for node := p.node(free, group, 1, first, end, nil); node >= 0 && got < devices; node = p.node(free, group, 1, node+1, end, nil) {
		n := min(free.Free[node], devices-got)
		counts = append(counts, n)
		got += n
	}
	return spec.NewShape(counts...), got == devices
}
