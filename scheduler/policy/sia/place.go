package sia

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// siaFloor is where chosen configurations are given devices.
type siaFloor struct {
	belief *candidate.Finder
	s      *scheduler.Snapshot
	free   *scheduler.Inventory // without the devices of jobs that stay as they are
}

// place gives devices to all rows, the largest configurations first. A job that keeps its
// configuration keeps its devices, unless another job of its group finds no room: then
// all jobs of that group are placed anew.
func (f *siaFloor) place(rows []*Row, picks []int) {
	byGroup := make([][]int, len(f.s.Cluster.Groups)) // rows
	for i, c := range picks {
		if c >= 0 {
			g := rows[i].Cells[c].Group
			byGroup[g] = append(byGroup[g], i)
		}
	}
	for _, members := range byGroup {
		slices.SortStableFunc(members, func(a, b int) int {
			return cmp.Compare(rows[b].Cells[picks[b]].Devices, rows[a].Cells[picks[a]].Devices)
		})
		stay := func(i int) bool { return rows[i].CellOf(f.s) == picks[i] }
		missed := f.fill(rows, picks, members, stay)
		if missed {
			for _, i := range members {
				if rows[i].Granted != nil {
					f.free.Give(rows[i].Granted.Slots)
					rows[i].Granted = nil
				}
			}
			f.fill(rows, picks, members, func(int) bool { return false })
		}
	}
}

// fill places the members of a group, those that stay first, and reports whether
// one got less than its configuration.
func (f *siaFloor) fill(rows []*Row, picks, members []int, stay func(int) bool) (missed bool) {
	for _, i := range members {
		if stay(i) && f.free.Take(rows[i].Grant.Slots) {
			rows[i].Granted = rows[i].Grant
		}
	}
	for _, i := range members {
		if r := rows[i]; r.Granted == nil && !f.settle(r, picks[i]) {
			missed = true
		}
	}
	return missed
}

// settle gives r its configuration, and reports whether there was room. If not, it
// gets the largest smaller one there is room for.
func (f *siaFloor) settle(r *Row, pick int) bool {
	for c := pick; c >= 0 && r.Cells[c].Group == r.Cells[pick].Group; c-- {
		if g := f.find(r, &r.Cells[c]); g != nil && f.free.Take(g.Slots) {
			r.Granted = g
			return c == pick
		}
	}
	return false
}

// find returns free devices for a configuration: those r has, if it is in it.
func (f *siaFloor) find(r *Row, cell *Cell) *scheduler.Grant {
	if now := r.CellOf(f.s); now >= 0 && &r.Cells[now] == cell && f.free.Take(r.Grant.Slots) {
		f.free.Give(r.Grant.Slots)
		return r.Grant
	}
	for i := range cell.Options {
		if g := f.belief.PlaceConfig(f.free, r.Job, &cell.Options[i], cell.Blind); g != nil {
			g.Elastic = cell.Elastic
			return g
		}
	}
	return nil
}
