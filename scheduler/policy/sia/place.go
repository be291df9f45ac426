package sia

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// placement places the chosen configurations.
type placement struct {
	finder *candidate.Finder
	s      *scheduler.Snapshot
	free   *scheduler.Inventory // without the devices of jobs that keep theirs
}

// Place sets the grants of rows: of each that of the cell with the index in picks, -1 = none,
// or of the largest smaller one in its group that fits. free is taken from. The largest
// configurations are placed first; a job that keeps its configuration keeps its devices,
// unless another job of the group would not fit.
func Place(finder *candidate.Finder, s *scheduler.Snapshot, free *scheduler.Inventory, rows []*Row, picks []int) {
	(&placement{finder: finder, s: s, free: free}).place(rows, picks)
}

// place places all rows, the largest configurations first. A job that keeps its
// configuration keeps its devices. If a job of a group does not fit that way, all jobs of
// the group are placed again.
func (f *placement) place(rows []*Row, picks []int) {
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

// fill places the members of a group, first those that stay, and reports whether any got
// less than its configuration.
func (f *placement) fill(rows []*Row, picks, members []int, stay func(int) bool) (missed bool) {
	for _, i := range members {
		if stay(i) && f.free.Take(rows[i].Grant.Slots) {
			rows[i].Granted = rows[i].Grant
		}
	}
	for _, i := range members {
		if r := rows[i]; r.Granted == nil && !f.placeRow(r, picks[i]) {
			missed = true
		}
	}
	return missed
}

// placeRow places r in its configuration, or in the largest smaller one that fits. It
// reports whether it got its configuration.
func (f *placement) placeRow(r *Row, pick int) bool {
	for c := pick; c >= 0 && r.Cells[c].Group == r.Cells[pick].Group; c-- {
		if g := f.find(r, &r.Cells[c]); g != nil && f.free.Take(g.Slots) {
			r.Granted = g
			return c == pick
		}
	}
	return false
}

// find returns free devices for a configuration, preferably those that r holds in it.
func (f *placement) find(r *Row, cell *Cell) *scheduler.Grant {
	if now := r.CellOf(f.s); now >= 0 && &r.Cells[now] == cell && f.free.Take(r.Grant.Slots) {
		f.free.Give(r.Grant.Slots)
		return r.Grant
	}
	for i := range cell.Options {
		if g := f.finder.PlaceConfig(f.free, r.Job, &cell.Options[i], cell.Unpredicted); g != nil {
			g.Elastic = cell.Elastic
			return g
		}
	}
	return nil
}
