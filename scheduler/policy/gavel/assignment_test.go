package gavel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The assignment costs as much as the cheapest of all assignments.
func TestAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(0, 5).Draw(t, "rows")
		columns := rows + rapid.IntRange(0, 2).Draw(t, "more columns")
		cost := make([][]float64, rows)
		for r := range cost {
			cost[r] = rapid.SliceOfN(rapid.Float64Range(0, 9), columns, columns).Draw(t, "costs")
		}
		got, used := 0.0, map[int]bool{}
		for r, c := range assign(cost) {
			if used[c] {
				t.Fatalf("column %d is given twice", c)
			}
			used[c] = true
			got += cost[r][c]
		}
		if want := cheapestOf(cost, 0, make([]bool, columns)); math.Abs(got-want) > 1e-9 {
			t.Fatalf("costs %g, the cheapest %g: %v", got, want, cost)
		}
	})
}

// cheapestOf tries every assignment of the rows from r on.
func cheapestOf(cost [][]float64, r int, used []bool) float64 {
	if r == len(cost) {
		return 0
	}
	best := math.Inf(1)
	for c := range used {
		if !used[c] {
			used[c] = true
			best = min(best, cost[r][c]+cheapestOf(cost, r+1, used))
			used[c] = false
		}
	}
	return best
}
