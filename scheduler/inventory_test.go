package scheduler

import (
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func TestInventory(t *testing.T) {
	inv := NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4}, {Count: 1, Devices: 8}}})
	if !slices.Equal(inv.Free, []int{4, 4, 8}) || !slices.Equal(inv.Group, []int{0, 0, 1}) {
		t.Fatalf("free %v, groups %v", inv.Free, inv.Group)
	}
	if first, end := inv.Nodes(1); first != 2 || end != 3 {
		t.Errorf("group 1 is nodes %d..%d", first, end)
	}
	other := inv.Clone()
	if !inv.Take([]Slot{{0, 4}, {2, 3}}) || inv.FreeIn(0) != 4 || inv.FreeIn(1) != 5 {
		t.Errorf("after Take: free %v", inv.Free)
	}
	for _, bad := range [][]Slot{{{0, 1}}, {{1, 1}, {2, 6}}, {{3, 1}}, {{-1, 1}}, {{1, 0}}, {{1, -2}}} {
		before := slices.Clone(inv.Free)
		if inv.Take(bad) || !slices.Equal(before, inv.Free) || inv.FreeIn(0) != 4 {
			t.Errorf("Take(%v) changed %v to %v", bad, before, inv.Free)
		}
	}
	inv.Give([]Slot{{0, 4}, {2, 3}})
	if !slices.Equal(inv.Free, other.Free) {
		t.Errorf("after Give: %v, want %v", inv.Free, other.Free)
	}
}
