package place

import (
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

var topologyInfo = Info{
	Name: "topology",
	Doc:  "packed on nodes with numbers as close as possible, in one rack if there is room; neighbouring nodes share switches",
	New:  func() scheduler.Placer { return topology{packed{byNode{fullest}}} },
}

// topology assumes that nodes are numbered as they are cabled, rack by rack: the closer the
// numbers of a job's first and last node, the fewer switches its traffic passes.
type topology struct{ packed }

// Place returns the placement within the fewest consecutive nodes, in one rack if possible.
// Ties go to the fewest devices left free on its nodes, then to the lowest nodes.
func (p topology) Place(free *scheduler.Inventory, group int, want spec.Shape) ([]scheduler.Slot, bool) {
	if want.Nodes() < 2 {
		return p.packed.Place(free, group, want)
	}
	if group < 0 || free.FreeIn(group) < want.Total() {
		return nil, false
	}
	counts := want.PerNode()
	first, end := free.Nodes(group)
	slots := p.nearest(free, group, counts, func(from int) int { return free.RackEnd(group, from) })
	if slots == nil && free.RackEnd(group, first) < end {
		slots = p.nearest(free, group, counts, func(int) int { return end })
	}
	return slots, slots != nil
}

// nearest places counts within the fewest consecutive nodes, all below the limit of the
// first one; nil if they do not fit.
func (p topology) nearest(free *scheduler.Inventory, group int, counts []int, limit func(from int) int) []scheduler.Slot {
	first, end := free.Nodes(group)
	var best []scheduler.Slot
	span, left := end-first+1, 0
	for from := first; from+len(counts) <= end; from++ {
		to := shortest(free, counts, from, min(limit(from), from+span))
		if to < 0 {
			continue
		}
		slots, _ := p.among(free, group, counts, from, to)
		over := 0
		for _, s := range slots {
			over += free.Free[s.Node] - s.Devices
		}
		if to-from < span || over < left {
			best, span, left = slots, to-from, over
		}
	}
	return best
}

// shortest returns the least to <= end such that the nodes [from, to) have room for counts,
// which descend; -1 if there is none, or if node from has no room for any count.
func shortest(free *scheduler.Inventory, counts []int, from, end int) int {
	if free.Free[from] < counts[len(counts)-1] {
		return -1
	}
	for to := from + len(counts); to <= end; to++ {
		if roomFor(free, counts, from, to) {
			return to
		}
	}
	return -1
}

// roomFor reports whether the nodes [from, to) have room for counts, which descend: for
// every count there must be as many nodes with room for it as counts of at least its size.
func roomFor(free *scheduler.Inventory, counts []int, from, to int) bool {
	for i, n := range counts {
		if i+1 < len(counts) && counts[i+1] == n {
			continue // the last of equal counts needs the most nodes
		}
		nodes := 0
		for node := from; node < to; node++ {
			if free.Free[node] >= n {
				nodes++
			}
		}
		if nodes <= i {
			return false
		}
	}
	return true
}
