package candidate

import (
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// TestFindStaying: a job gets a node on which it can end before the node goes down, and another node if there is none.
func TestFindStaying(t *testing.T) {
	c := spec.Cluster{Groups: []spec.NodeGroup{{Count: 3, Devices: 4, Accelerator: spec.Accelerator{Name: "x", MemBytes: 500}}}}
	f := NewFinder(policy.Deps{Oracle: planner.New(hostBound{}, planner.Options{})})
	o := Config{Devices: 4, Rate: 2, Shape: spec.NewShape(4)}
	for _, x := range []struct {
		steps float64
		away  []int // nodes without free devices
		want  int
	}{
		{199, nil, 0},          // ends after 99.5 s
		{220, nil, 1},          // after 110 s, and node 0 goes down at 100 s
		{1000, nil, 2},         // after 500 s, and node 1 goes down at 200 s
		{1000, []int{2}, 0},    // no node stays
		{220, []int{1, 2}, 0},  // the same
		{0, nil, 2},            // it may take any time
		{199, []int{0, 1}, 2},  // room on one node
		{1000, []int{0, 1}, 2}, // the same
	} {
		l := scheduler.NewLedger(c, nil)
		l.SetLeaving([]scheduler.Leaving{{Node: 0, At: 100 * time.Second}, {Node: 1, At: 200 * time.Second}})
		free := l.Snapshot(0).Free()
		for _, node := range x.away {
			free.Take([]scheduler.Slot{{Node: node, Devices: 4}})
		}
		slots, ok := f.Find(free, &spec.Job{ID: "a", Steps: x.steps}, &o)
		if !ok || len(slots) != 1 || slots[0].Node != x.want {
			t.Errorf("%g steps, nodes %v taken: %v, want node %d", x.steps, x.away, slots, x.want)
		}
	}
}
