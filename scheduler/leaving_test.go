package scheduler

import (
	"slices"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Staying leaves out the nodes that go down within a time, in its group only, and is the
// inventory itself if none does.
func TestStaying(t *testing.T) {
	l := NewLedger(spec.Cluster{Groups: []spec.NodeGroup{{Count: 3, Devices: 4}, {Count: 1, Devices: 8}}}, nil)
	l.SetLeaving([]Leaving{{Node: 1, At: 100 * time.Second, Back: 200 * time.Second}, {Node: 3, At: 30 * time.Second}})
	s := l.Snapshot(20 * time.Second)
	if s.Leaves(0) != nil || s.Leaves(1) == nil || s.Leaves(1).Back != 200*time.Second {
		t.Errorf("node 0 leaves %v, node 1 %v", s.Leaves(0), s.Leaves(1))
	}
	for _, free := range []*Inventory{s.Free(), s.Idle(), s.Free().Clone()} {
		if free.Staying(0, 80*time.Second) != free || free.Staying(1, 10*time.Second) != free || free.Staying(-1, time.Hour) != free {
			t.Error("a view although no free node goes down by then")
		}
		if got := free.Staying(0, 81*time.Second); !slices.Equal(got.Free, []int{4, 0, 4, 8}) || got.FreeIn(0) != 8 || got.Next(0, 4, 1) != 2 {
			t.Errorf("within 81 s: %v", got.Free)
		}
		if got := free.Staying(1, time.Hour); !slices.Equal(got.Free, []int{4, 4, 4, 0}) {
			t.Errorf("group 1: %v", got.Free)
		}
	}
	full := s.Free()
	full.Take([]Slot{{Node: 1, Devices: 4}})
	if full.Staying(0, time.Hour) != full {
		t.Error("a view although the node that goes down has no free devices")
	}
}
