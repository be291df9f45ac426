package policy

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// What the table and the prices choose costs the same, and as little as the best of
// all that there is to choose.
func TestChooseCells(t *testing.T) {
	const wait = 1.1
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 3).Draw(t, "room")
		var rows []*siaRow
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			r := &siaRow{}
			for range rapid.IntRange(0, 4).Draw(t, "cells") {
				r.cells = append(r.cells, siaCell{
					group:   rapid.IntRange(0, len(room)-1).Draw(t, "group"),
					devices: rapid.IntRange(1, 4).Draw(t, "devices"),
				})
				r.costs = append(r.costs, rapid.Float64Range(0, 1.5).Draw(t, "cost"))
			}
			rows = append(rows, r)
		}
		best := least(rows, wait, room)
		exact := chooseExactly(rows, wait, room)
		priced, proven, err := chooseByPrices(t.Context(), rows, wait, room)
		if err != nil || !proven {
			t.Fatalf("by prices: proven %v, error %v", proven, err)
		}
		for name, picks := range map[string][]int{"exactly": exact, "by prices": priced} {
			left := append([]int(nil), room...)
			cost := 0.0
			for i, c := range picks {
				if c < 0 {
					cost += wait
					continue
				}
				cost += rows[i].costs[c]
				if left[rows[i].cells[c].group] -= rows[i].cells[c].devices; left[rows[i].cells[c].group] < 0 {
					t.Fatalf("%s: %v takes more than there is", name, picks)
				}
			}
			within := 1e-8
			if name == "by prices" {
				within = 1e-4*wait*float64(len(rows)) + within
			}
			if math.Abs(cost-best) > within {
				t.Errorf("%s: %v costs %g, the best %g", name, picks, cost, best)
			}
		}
	})
}

// least goes through all there is.
func least(rows []*siaRow, wait float64, room []int) float64 {
	if len(rows) == 0 {
		return 0
	}
	r, best := rows[0], wait+least(rows[1:], wait, room)
	for c, cell := range r.cells {
		if cell.devices <= room[cell.group] {
			room[cell.group] -= cell.devices
			best = min(best, r.costs[c]+least(rows[1:], wait, room))
			room[cell.group] += cell.devices
		}
	}
	return best
}
