package place

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// better compares the free devices of two nodes for a placer that scans all nodes; negative
// if the first is better.
var better = map[choice]func(a, b int) int{
	fullest:  cmp.Compare[int],
	emptiest: func(a, b int) int { return cmp.Compare(b, a) },
	lowest:   func(int, int) int { return 0 },
}

// scan places descending counts, each on the best unused node with room, the first of
// equals.
func scan(free []int, counts []int, first, end int, order func(a, b int) int) []scheduler.Slot {
	var slots []scheduler.Slot
	for _, n := range counts {
		best := -1
		for node := first; node < end; node++ {
			used := slices.ContainsFunc(slots, func(s scheduler.Slot) bool { return s.Node == node })
			if free[node] >= n && !used && (best < 0 || order(free[node], free[best]) < 0) {
				best = node
			}
		}
		if best < 0 {
			return nil
		}
		slots = append(slots, scheduler.Slot{Node: best, Devices: n})
	}
	slices.SortFunc(slots, func(a, b scheduler.Slot) int { return cmp.Compare(a.Node, b.Node) })
	return slots
}

// scanLay distributes devices over all nodes in the order of their free devices.
func scanLay(free []int, devices int, order func(a, b int) int, share func(nodes, left, has int) int) spec.Shape {
	has := slices.DeleteFunc(slices.Clone(free), func(n int) bool { return n == 0 })
	slices.SortFunc(has, order)
	var counts []int
	for i := 0; devices > 0; i++ {
		n := share(len(has)-i, devices, has[i])
		counts = append(counts, n)
		devices -= n
	}
	return spec.NewShape(counts...)
}

// Placers that use the index give the same results as scans of all nodes, including ties,
// after any changes.
func TestAsByScanning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := spec.Cluster{Groups: []spec.NodeGroup{
			{Count: rapid.IntRange(1, 3).Draw(t, "before"), Devices: 2},
			{Count: rapid.IntRange(1, 150).Draw(t, "nodes"), Devices: rapid.SampledFrom([]int{1, 4, 8}).Draw(t, "size")},
		}}
		free := scheduler.NewInventory(cluster)
		first, end := free.Nodes(1)
		for range rapid.IntRange(0, 200).Draw(t, "changes") {
			s := []scheduler.Slot{{Node: rapid.IntRange(first, end-1).Draw(t, "node"), Devices: rapid.IntRange(1, free.Size(1)).Draw(t, "devices")}}
			if !free.Take(s) && free.Free[s[0].Node]+s[0].Devices <= free.Size(1) {
				free.Give(s)
			}
		}
		var counts []int
		for range rapid.IntRange(1, 5).Draw(t, "counts") {
			counts = append(counts, rapid.IntRange(1, free.Size(1)).Draw(t, "count"))
		}
		slices.SortFunc(counts, func(a, b int) int { return b - a })
		for best, order := range better {
			got, _ := byNode{best}.Place(free, 1, spec.NewShape(counts...))
			if diff := gocmp.Diff(scan(free.Free, counts, first, end, order), got); diff != "" {
				t.Fatalf("choice %d of %v for %v (-scan +index):\n%s", best, free.Free, counts, diff)
			}
		}
		n := rapid.IntRange(1, 20).Draw(t, "lay")
		if n > free.FreeIn(1) {
			return
		}
		dense, _ := packed{}.Lay(free, 1, n)
		if want := scanLay(free.Free[first:], n, better[emptiest], func(_, left, has int) int { return min(left, has) }); dense != want {
			t.Fatalf("packed lays %d on %v out as %s, want %s", n, free.Free, dense, want)
		}
		thin, _ := spread{}.Lay(free, 1, n)
		if want := scanLay(free.Free[first:], n, better[fullest], func(nodes, left, has int) int { return min(has, (left+nodes-1)/nodes) }); thin != want {
			t.Fatalf("spread lays %d on %v out as %s, want %s", n, free.Free, thin, want)
		}
	})
}
