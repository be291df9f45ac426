package gavel

import "math"

// assign returns a distinct column for every row of a cost matrix, with minimal total
// cost. Costs are finite and there are at least as many columns as rows. Ties go to the
// lower column. It uses shortest augmenting paths (Kuhn, 1955; Jonker and Volgenant,
// 1987) in time rows² x columns.
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

// assignment is an optimal assignment of the rows added so far, with dual potentials:
// u + v equals the cost of assigned pairs and is at most the cost of the others.
type assignment struct {
	cost [][]float64
	u, v []float64 // of rows and columns
	row  []int     // row of each column, -1 = none
}

// augment adds row r: it reassigns rows along the shortest path to a free column.
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
