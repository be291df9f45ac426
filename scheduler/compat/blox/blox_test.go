package blox

import (
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
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

// Jobs noticed together run in order of their numbers, not of their texts; other IDs come last.
func TestNumbersInOrder(t *testing.T) {
	var r sim.Rules
	NumbersInOrder(&r)
	ids := []spec.JobID{"x", "job-10", "a", "job-9", "2", "job-007"}
	slices.SortFunc(ids, r.Ties)
	if want := []spec.JobID{"2", "job-007", "job-9", "job-10", "a", "x"}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v", ids, want)
	}
}

// A job with 8 devices for 10 s was served 10 s.
func TestJobService(t *testing.T) {
	if got := JobService(80, 8); got != 10 {
		t.Errorf("%g s, want 10", got)
	}
}
