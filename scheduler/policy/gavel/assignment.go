package gavel

import "math"

// assign returns for every row of a cost matrix the column it gets, no two the
// same, so that the sum of costs is least. There are at least as many columns as
// rows, and costs are finite; the first of equal columns is taken. By shortest
// augmenting paths (Kuhn, 1955; Jonker and Volgenant, 1987) in time rows² x columns.
func assign(cost [][]float64) []int {
	if len(cost) == 0 {
		return nil
	}
	columns := len(cost[0])
	a := assignment{cost: cost, u: make([]float64, len(cost)), v: make([]float64, columns), row: make([]int, columns)}
	for c := range a.row {
		a.row[c] = -1
	}
	for r := range cost {
		a.augment(r)
	}
	out := make([]int, len(cost))
	for c, r := range a.row {
		if r >= 0 {
			out[r] = c
		}
	}
	return out
}

// assignment is some rows assigned at least cost, proven by potentials: u + v is
// the cost where a column has a row, and no more elsewhere.
type assignment struct {
	cost [][]float64
	u, v []float64 // of rows and columns
	row  []int     // that each column has, -1 = none
}

// augment assigns row r too, moving others along the shortest path to a free
// column.
func (a *assignment) augment(r int) {
	columns := len(a.v)
	dist, from, seen := make([]float64, columns), make([]int, columns), make([]bool, columns)
	for c := range dist {
		dist[c], from[c] = math.Inf(1), -1
	}
	at, column, far := r, -1, 0.0
	for {
		next := -1
		for c := range columns {
			if seen[c] {
				continue
			}
			if d := far + a.cost[at][c] - a.u[at] - a.v[c]; d < dist[c] {
				dist[c], from[c] = d, column
			}
			if next < 0 || dist[c] < dist[next] {
				next = c
			}
		}
		column, far = next, dist[next]
		seen[column] = true
		if at = a.row[column]; at < 0 {
			break
		}
	}
	a.u[r] += far
	for c := range columns {
		if seen[c] && a.row[c] >= 0 {
			a.u[a.row[c]] += far - dist[c]
		}
		if seen[c] {
			a.v[c] -= far - dist[c]
		}
	}
	for column >= 0 {
		before := from[column]
		if before < 0 {
			a.row[column] = r
		} else {
			a.row[column] = a.row[before]
		}
		column = before
	}
}
