package blox

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Each node gives up to the whole demand, and the sum must be exact.
func TestWholeDemand(t *testing.T) {
	p := WholeDemand()
	for _, c := range []struct {
		free    []int
		devices int
		want    string
	}{
		{[]int{3, 2}, 4, ""}, {[]int{2, 2, 8}, 4, "2+2"}, {[]int{0, 4}, 4, "4"}, {[]int{1, 8}, 4, ""}, {[]int{8, 1}, 4, "4"},
	} {
		if shape, ok := p.Lay(inventory(c.free...), 0, c.devices); ok != (c.want != "") || ok && shape.Devices != c.want {
			t.Errorf("%d on %v: %q %v, want %q", c.devices, c.free, shape.Devices, ok, c.want)
		}
	}
}

// inventory returns nodes of 8 devices with the given numbers of free ones.
func inventory(free ...int) *scheduler.Inventory {
	inv := scheduler.NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: len(free), Devices: 8}}})
	for node, n := range free {
		if n < 8 {
			inv.Take([]scheduler.Slot{{Node: node, Devices: 8 - n}})
		}
	}
	return inv
}
