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
	if !inv.Take([]Slot{{Node: 0, Devices: 4}, {Node: 2, Devices: 3}}) || inv.FreeIn(0) != 4 || inv.FreeIn(1) != 5 {
		t.Errorf("after Take: free %v", inv.Free)
	}
	for _, bad := range [][]Slot{{{Node: 0, Devices: 1}}, {{Node: 1, Devices: 1}, {Node: 2, Devices: 6}}, {{Node: 3, Devices: 1}}, {{Node: -1, Devices: 1}}, {{Node: 1, Devices: 0}}, {{Node: 1, Devices: -2}}} {
		before := slices.Clone(inv.Free)
		if inv.Take(bad) || !slices.Equal(before, inv.Free) || inv.FreeIn(0) != 4 {
			t.Errorf("Take(%v) changed %v to %v", bad, before, inv.Free)
		}
	}
	inv.Give([]Slot{{Node: 0, Devices: 4}, {Node: 2, Devices: 3}})
	if !slices.Equal(inv.Free, other.Free) {
		t.Errorf("after Give: %v, want %v", inv.Free, other.Free)
	}
}

// TestInventoryHost checks that host resources are taken with devices, and reduce the
// free devices for jobs that need host resources, but not for others.
func TestInventoryHost(t *testing.T) {
	inv := NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 6}, {Count: 1, Devices: 8, HostBytes: 100}, {Count: 1, Devices: 2}}})
	need := spec.Host{MilliCPUs: 2500}
	if inv.For(0, spec.Host{}) != inv || inv.For(1, need) != inv || inv.For(2, need) != inv || inv.For(0, spec.Host{MilliCPUs: 1500}) != inv {
		t.Error("a view although the host resources suffice")
	}
	seen := inv.For(0, need)
	if !slices.Equal(seen.Free, []int{2, 2, 8, 2}) || seen.Size(0) != 2 || seen.FreeIn(0) != 4 || seen.With(0, 2) != 2 || seen.FreeIn(1) != 8 {
		t.Errorf("idle: free %v, size %d, %d in all", seen.Free, seen.Size(0), seen.FreeIn(0))
	}
	for free, taken := range map[int]int{4: 0, 1: 3} { // the second node is short, with as many free devices as the first or others
		few := NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 6}}})
		few.Take([]Slot{{Node: 0, Devices: taken}, {Node: 1, Host: spec.Host{MilliCPUs: 5000}}}[max(1-taken, 0):])
		if got := few.For(0, spec.Host{MilliCPUs: 1500}).Free; !slices.Equal(got, []int{free, 0}) {
			t.Errorf("with 1 of 6 CPUs of node 1 free: %v, want %d and 0", got, free)
		}
	}
	slots := []Slot{{Node: 1, Devices: 1, Host: need}, {Node: 2, Devices: 3, Host: spec.Host{Bytes: 40}}}
	if !inv.Take(slots) {
		t.Fatal("not all is free")
	}
	if got := inv.For(0, need).Free; !slices.Equal(got, []int{2, 1, 5, 2}) {
		t.Errorf("with 2.5 of 6 CPUs of node 1 taken: %v", got)
	}
	if got := inv.For(1, spec.Host{Bytes: 20}).Free; !slices.Equal(got, []int{4, 3, 3, 2}) {
		t.Errorf("with 40 of 100 bytes of node 2 taken: %v", got)
	}
	for _, bad := range [][]Slot{
		{{Node: 0, Devices: 1}, {Node: 1, Devices: 1, Host: spec.Host{MilliCPUs: 3501}}},
		{{Node: 2, Devices: 1, Host: spec.Host{Bytes: 61}}},
	} {
		before := inv.Clone()
		if inv.Take(bad) || inv.differs(before) != nil {
			t.Errorf("Take(%v) takes what is not there", bad)
		}
	}
	inv.Give(slots)
	if err := inv.differs(NewInventory(spec.Cluster{Groups: []spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 6}, {Count: 1, Devices: 8, HostBytes: 100}, {Count: 1, Devices: 2}}})); err != nil {
		t.Error(err)
	}
}
