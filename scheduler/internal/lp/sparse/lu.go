package sparse

import "math"

// LU factors a square matrix B that is given column by column, with L unit lower triangular up to a row permutation.
// Each column is reduced by its predecessors (Gilbert and Peierls, Sparse partial pivoting in time proportional to
// arithmetic operations, SIAM J. Sci. Stat. Comput. 9(5), 1988, without their symbolic search for nonzeros).
type LU struct {
	count    []int // entries by row of the source of B: among sufficient pivots the one in the row with the fewest is chosen
	pivot    []int // by column of B, the row of its pivot
	taken    []bool
	diagonal []float64
	l, u     []run // by column: rows below with their multiples; earlier columns with theirs
	// The current column:
	work    []float64 // by row
	touched []bool    // by row
	rows    []int     // touched rows
}

// run is the entries of one column.
type run struct {
	idx []int
	val []float64
}

const (
	luPivot     = 0.1   // least pivot, relative to the largest entry of the column
	luDependent = 1e-10 // reduced columns below this share of their largest entry are rounding
)

// NewLU returns empty factors for columns of a, and for unit columns.
func NewLU(a *Matrix) *LU {
	f := &LU{count: make([]int, a.Rows), taken: make([]bool, a.Rows), work: make([]float64, a.Rows), touched: make([]bool, a.Rows)}
	for _, i := range a.Idx {
		f.count[i]++
	}
	return f
}

// Reset removes all columns.
func (f *LU) Reset() {
	f.pivot, f.diagonal, f.l, f.u = f.pivot[:0], f.diagonal[:0], f.l[:0], f.u[:0]
	clear(f.taken)
}

// Cols returns the number of columns.
func (f *LU) Cols() int { return len(f.pivot) }

// Taken reports whether row i has a pivot.
func (f *LU) Taken(i int) bool { return f.taken[i] }

// Add adds a column with entries val in rows idx. It returns false, without adding it, if the column depends on
// earlier ones up to rounding.
func (f *LU) Add(idx []int, val []float64) bool {
	size := 0.0
	for q, i := range idx {
		f.put(i, val[q])
		size = math.Max(size, math.Abs(val[q]))
	}
	var u run
	for k, i := range f.pivot {
		v := f.work[i]
		if v == 0 {
			continue
		}
		u.idx, u.val = append(u.idx, k), append(u.val, v)
		for q, r := range f.l[k].idx {
			f.put(r, -f.l[k].val[q]*v)
		}
	}
	p := f.choose(luDependent * size)
	if p >= 0 {
		f.pivot, f.diagonal, f.taken[p] = append(f.pivot, p), append(f.diagonal, f.work[p]), true
		f.l, f.u = append(f.l, f.below(p)), append(f.u, u)
	}
	for _, i := range f.rows {
		f.work[i], f.touched[i] = 0, false
	}
	f.rows = f.rows[:0]
	return p >= 0
}

// put adds v to row i of the current column.
func (f *LU) put(i int, v float64) {
	if !f.touched[i] {
		f.touched[i] = true
		f.rows = append(f.rows, i)
	}
	f.work[i] += v
}

// choose returns the pivot row of the reduced column, -1 if no entry is above least.
func (f *LU) choose(least float64) int {
	most := 0.0
	for _, i := range f.rows {
		if v := math.Abs(f.work[i]); v > most && !f.taken[i] {
			most = v
		}
	}
	if !(most > least) {
		return -1
	}
	at := -1
	for _, i := range f.rows {
		if !f.taken[i] && math.Abs(f.work[i]) >= luPivot*most && (at < 0 || f.count[i] < f.count[at]) {
			at = i
		}
	}
	return at
}

// below returns the entries of a reduced column in rows without a pivot, except p, divided by the pivot.
func (f *LU) below(p int) (l run) {
	for _, i := range f.rows {
		if v := f.work[i]; v != 0 && i != p && !f.taken[i] {
			l.idx, l.val = append(l.idx, i), append(l.val, v/f.work[p])
		}
	}
	return l
}

// Solve sets x to the solution of B x = r, by column of B. It destroys r, which is by row.
func (f *LU) Solve(x, r []float64) {
	for k, i := range f.pivot {
		v := r[i]
		if v == 0 {
			continue
		}
		for q, j := range f.l[k].idx {
			r[j] -= f.l[k].val[q] * v
		}
	}
	for k := len(f.pivot) - 1; k >= 0; k-- {
		x[k] = r[f.pivot[k]] / f.diagonal[k]
		if x[k] == 0 {
			continue
		}
		for q, j := range f.u[k].idx {
			r[f.pivot[j]] -= f.u[k].val[q] * x[k]
		}
	}
}

// SolveT sets y to the solution of B' y = c, by row. c is by column of B.
func (f *LU) SolveT(y, c []float64) {
	for k, i := range f.pivot {
		v := c[k]
		for q, j := range f.u[k].idx {
			v -= f.u[k].val[q] * y[f.pivot[j]]
		}
		y[i] = v / f.diagonal[k]
	}
	for k := len(f.pivot) - 1; k >= 0; k-- {
		i := f.pivot[k]
		for q, j := range f.l[k].idx {
			y[i] -= f.l[k].val[q] * y[j]
		}
	}
}
