package policy

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
)

// siaFloor is where chosen configurations are given devices.
type siaFloor struct {
	belief *belief
	s      *scheduler.Snapshot
	free   *scheduler.Inventory // of those who are not to be left alone
}

// place gives devices to all rows, the largest configurations first. Who stays in
// its configuration stays where it is, unless somebody then finds no room: in
// that group all are placed anew.
func (f *siaFloor) place(rows []*siaRow, picks []int) {
	byGroup := make([][]int, len(f.s.Cluster.Groups)) // rows
	for i, c := range picks {
		if c >= 0 {
			g := rows[i].cells[c].group
			byGroup[g] = append(byGroup[g], i)
		}
	}
	for _, members := range byGroup {
		slices.SortStableFunc(members, func(a, b int) int {
			return cmp.Compare(rows[b].cells[picks[b]].devices, rows[a].cells[picks[a]].devices)
		})
		stay := func(i int) bool { return rows[i].cellOf(f.s) == picks[i] }
		missed := f.fill(rows, picks, members, stay)
		if missed {
			for _, i := range members {
				if rows[i].grant != nil {
					f.free.Give(rows[i].grant.Slots)
					rows[i].grant = nil
				}
			}
			f.fill(rows, picks, members, func(int) bool { return false })
		}
	}
}

// fill places the members of a group, those who stay first, and reports whether
// one got less than its configuration.
func (f *siaFloor) fill(rows []*siaRow, picks, members []int, stay func(int) bool) (missed bool) {
	for _, i := range members {
		if stay(i) && f.free.Take(rows[i].Grant.Slots) {
			rows[i].grant = rows[i].Grant
		}
	}
	for _, i := range members {
		if r := rows[i]; r.grant == nil && !f.settle(r, picks[i]) {
			missed = true
		}
	}
	return missed
}

// settle gives r its configuration, and reports whether there was room. If not, it
// gets the largest smaller one there is room for.
func (f *siaFloor) settle(r *siaRow, pick int) bool {
	for c := pick; c >= 0 && r.cells[c].group == r.cells[pick].group; c-- {
		if g := f.find(r, &r.cells[c]); g != nil && f.free.Take(g.Slots) {
			r.grant = g
			return c == pick
		}
	}
	return false
}

// find returns free devices for a configuration: those r has, if it is in it.
func (f *siaFloor) find(r *siaRow, cell *siaCell) *scheduler.Grant {
	if now := r.cellOf(f.s); now >= 0 && &r.cells[now] == cell && f.free.Take(r.Grant.Slots) {
		f.free.Give(r.Grant.Slots)
		return r.Grant
	}
	for i := range cell.options {
		if g := f.belief.placeWay(f.free, r.Job, &cell.options[i], cell.blind); g != nil {
			g.Elastic = cell.elastic
			return g
		}
	}
	return nil
}
