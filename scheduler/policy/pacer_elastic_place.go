package policy

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
)

// elasticFloor is where chosen configurations are given devices.
type elasticFloor struct {
	belief *belief
	s      *scheduler.Snapshot
	rows   []*siaRow
	free   *scheduler.Inventory
}

// place gives devices to all rows, the largest configurations first. Who stays in
// its configuration stays where it is, unless a larger one finds no room together:
// then the nodes that are nearest to empty are cleared for it, and who was there,
// with less, looks for room elsewhere. Who finds none waits.
func (f *elasticFloor) place(picks []int) {
	var open []int // rows
	for i, r := range f.rows {
		switch c := picks[i]; {
		case c < 0:
		case c == r.cellOf(f.s) && f.free.Take(r.Grant.Slots):
			r.grant = r.Grant
		default:
			open = append(open, i)
		}
	}
	largest := func(a, b int) int {
		return cmp.Compare(f.rows[b].cells[picks[b]].devices, f.rows[a].cells[picks[a]].devices)
	}
	slices.SortStableFunc(open, largest)
	for len(open) > 0 {
		i := open[0]
		open = open[1:]
		if f.settle(f.rows[i], picks[i]) {
			continue
		}
		if left := f.clear(i, picks); len(left) > 0 {
			open = append(open, left...)
			slices.SortStableFunc(open, largest)
			f.settle(f.rows[i], picks[i])
		}
	}
}

// settle gives a row devices for a configuration, and reports whether there was
// room.
func (f *elasticFloor) settle(r *siaRow, pick int) bool {
	cell := &r.cells[pick]
	for i := range cell.options {
		if g := f.belief.placeWay(f.free, r.Job, &cell.options[i], cell.blind); g != nil && f.free.Take(g.Slots) {
			g.Elastic = cell.elastic
			r.grant = g
			return true
		}
	}
	return false
}

// clear takes the devices of smaller configurations away until there are enough
// on as many nodes as a row needs, those first that have most free, and of each the
// smallest first. It returns whom it took them from, nobody where that would not do.
func (f *elasticFloor) clear(row int, picks []int) (left []int) {
	cell := &f.rows[row].cells[picks[row]]
	needs := cell.options[0].shape.PerNode()
	for k, node := range f.clearable(cell, needs, picks) {
		for f.free.Free[node] < needs[k] {
			i := f.smallest(node)
			f.free.Give(f.rows[i].grant.Slots)
			f.rows[i].grant = nil
			left = append(left, i)
		}
	}
	return left
}

// clearable returns a node for each of needs, nil where there are not as many that
// have so much once smaller configurations than cell have left.
func (f *elasticFloor) clearable(cell *siaCell, needs, picks []int) []int {
	first, end := f.free.Nodes(cell.group)
	has := map[int]int{}
	var nodes []int
	for n := first; n < end; n++ {
		nodes, has[n] = append(nodes, n), f.free.Free[n]
	}
	for i, r := range f.rows {
		if r.grant != nil && r.cells[picks[i]].devices < cell.devices {
			for _, s := range r.grant.Slots {
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

// smallest returns the row with fewest devices among those with some on a node, of
// which there must be one.
func (f *elasticFloor) smallest(node int) int {
	best := -1
	for i, r := range f.rows {
		here := r.grant != nil && slices.ContainsFunc(r.grant.Slots, func(s scheduler.Slot) bool { return s.Node == node })
		if here && (best < 0 || r.grant.Devices() < f.rows[best].grant.Devices()) {
			best = i
		}
	}
	return best
}

// decision is what the rows were given.
func (f *elasticFloor) decision(picks []int) (d scheduler.Decision) {
	for i, r := range f.rows {
		switch {
		case r.grant.Same(r.Grant) && r.grant != nil:
		case picks[i] < 0:
			d.Because(f.s, r.Job.ID, "what there is is worth more to others")
		case r.grant == nil:
			d.Because(f.s, r.Job.ID, "size %d is meant for it, and finds no room together", r.cells[picks[i]].devices)
		default:
			d.Because(f.s, r.Job.ID, "size %d is worth %.3g, which is in the largest sum of all", r.cells[picks[i]].devices, -r.costs[picks[i]])
		}
		if r.grant == nil {
			continue
		}
		d.Grants = append(d.Grants, r.grant)
		if r.warning != "" {
			d.Warnings = append(d.Warnings, r.warning)
		}
	}
	return d
}
