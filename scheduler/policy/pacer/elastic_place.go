package pacer

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
)

// elasticPlacement places the chosen configurations.
type elasticPlacement struct {
	finder *candidate.Finder
	s      *scheduler.Snapshot
	rows   []*sia.Row
	free   *scheduler.Inventory
}

// place places all rows, the largest configurations first. A job that keeps its
// configuration keeps its devices, unless a larger one does not fit. Then the nodes with
// most free devices are cleared for the larger one, and the smaller jobs there move or wait.
func (f *elasticPlacement) place(picks []int) {
	var open []int // rows
	for i, r := range f.rows {
		switch c := picks[i]; {
		case c < 0:
		case c == r.CellOf(f.s) && f.free.Take(r.Grant.Slots):
			r.Granted = r.Grant
		default:
			open = append(open, i)
		}
	}
	largest := func(a, b int) int {
		return cmp.Compare(f.rows[b].Cells[picks[b]].Devices, f.rows[a].Cells[picks[a]].Devices)
	}
	slices.SortStableFunc(open, largest)
	for len(open) > 0 {
		i := open[0]
		open = open[1:]
		if f.placeRow(f.rows[i], picks[i]) {
			continue
		}
		if left := f.clear(i, picks); len(left) > 0 {
			open = append(open, left...)
			slices.SortStableFunc(open, largest)
			f.placeRow(f.rows[i], picks[i])
		}
	}
}

// placeRow places a row in a configuration, and reports whether it fits.
func (f *elasticPlacement) placeRow(r *sia.Row, pick int) bool {
	cell := &r.Cells[pick]
	for i := range cell.Options {
		if g := f.finder.PlaceConfig(f.free, r.Job, &cell.Options[i], cell.Unpredicted); g != nil && f.free.Take(g.Slots) {
			g.Elastic = cell.Elastic
			r.Granted = g
			return true
		}
	}
	return false
}

// clear evicts rows with smaller configurations until a row fits: nodes with most free
// devices first, and the smallest rows of each node first. It returns the evicted rows,
// none if that would not be enough.
func (f *elasticPlacement) clear(row int, picks []int) (left []int) {
	cell := &f.rows[row].Cells[picks[row]]
	needs := cell.Options[0].Shape.PerNode()
	for k, node := range f.clearable(cell, needs, picks) {
		for f.free.Free[node] < needs[k] {
			i := f.smallest(node)
			f.free.Give(f.rows[i].Granted.Slots)
			f.rows[i].Granted = nil
			left = append(left, i)
		}
	}
	return left
}

// clearable returns a node for each of needs, counting devices of rows with smaller
// configurations than cell as free; nil if there are not enough nodes.
func (f *elasticPlacement) clearable(cell *sia.Cell, needs, picks []int) []int {
	first, end := f.free.Nodes(cell.Group)
	has := map[int]int{}
	var nodes []int
	for n := first; n < end; n++ {
		nodes, has[n] = append(nodes, n), f.free.Free[n]
	}
	for i, r := range f.rows {
		if r.Granted != nil && r.Cells[picks[i]].Devices < cell.Devices {
			for _, s := range r.Granted.Slots {
				has[s.Node] += s.Devices
			}
		}
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(f.free.Free[b], f.free.Free[a]) })
	var out []int
	for _, need := range needs {
		i := slices.IndexFunc(nodes, func(n int) bool { return has[n] >= need })
		if i < 0 {
			return nil
		}
		out, nodes = append(out, nodes[i]), slices.Delete(nodes, i, i+1)
	}
	return out
}

// smallest returns the row with fewest devices among the rows on a node. There must be one.
func (f *elasticPlacement) smallest(node int) int {
	best := -1
	for i, r := range f.rows {
		here := r.Granted != nil && slices.ContainsFunc(r.Granted.Slots, func(s scheduler.Slot) bool { return s.Node == node })
		if here && (best < 0 || r.Granted.Devices() < f.rows[best].Granted.Devices()) {
			best = i
		}
	}
	return best
}

// decision returns the grants of the rows, with reasons.
func (f *elasticPlacement) decision(picks []int) (d scheduler.Decision) {
	for i, r := range f.rows {
		switch {
		case r.Granted.Same(r.Grant) && r.Granted != nil:
		case picks[i] < 0:
			d.Because(f.s, r.Job.ID, "the devices are worth more to other jobs")
		case r.Granted == nil:
			d.Because(f.s, r.Job.ID, "size %d was chosen, but the free devices are too fragmented", r.Cells[picks[i]].Devices)
		default:
			d.Because(f.s, r.Job.ID, "size %d, worth %.3g, is part of the highest total", r.Cells[picks[i]].Devices, -r.Costs[picks[i]])
		}
		if r.Granted == nil {
			continue
		}
		d.Grants = append(d.Grants, r.Granted)
		if r.Warning != "" {
			d.Warnings = append(d.Warnings, r.Warning)
		}
	}
	return d
}
