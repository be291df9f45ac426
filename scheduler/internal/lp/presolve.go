package lp

import (
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/lp/sparse"
)

// presolve reduces a form without changing its optimum (Andersen and Andersen, Presolving in linear programming,
// Mathematical Programming 71, 1995). It drops redundant rows, converts rows with one variable to bounds, merges rows
// that are multiples of each other, and removes variables that are fixed or in no row. It leaves contradictions to the
// solver, which proves them.
type presolve struct {
	f      *form
	byRow  *sparse.Matrix
	l, u   []float64
	lr, ur []float64
	rowOn  []bool
	colOn  []bool
	inRow  []int // entries of each row in remaining columns
	inCol  []int
	value  []float64 // of removed columns
	steps  []step
	dirty  []int // rows to examine
}

// step is one removed row, in order of removal.
type step struct {
	row, col int     // col is -1 for a redundant row
	coef     float64 // of col in row; or the ratio of row to kept
	kept     int     // the row that replaces a multiple of it, else -1
	// Whether this row sets the lower or upper bound of the column or the kept row.
	setLower, setUpper bool
}

// newPresolve applies all reductions.
func newPresolve(f *form) *presolve {
	n, m := f.a.Cols, f.a.Rows
	p := &presolve{
		f: f, byRow: f.a.Transpose(), l: slices.Clone(f.l), u: slices.Clone(f.u), lr: slices.Clone(f.lr), ur: slices.Clone(f.ur),
		rowOn: make([]bool, m), colOn: make([]bool, n), inRow: make([]int, m), inCol: make([]int, n), value: make([]float64, n),
	}
	for i := range m {
		p.rowOn[i], p.inRow[i] = true, p.byRow.Ptr[i+1]-p.byRow.Ptr[i]
		p.dirty = append(p.dirty, i)
	}
	for j := range n {
		p.colOn[j], p.inCol[j] = true, f.a.Ptr[j+1]-f.a.Ptr[j]
		p.settle(j)
	}
	p.rows()
	p.multiples()
	p.rows()
	return p
}

// rows examines rows until none changes.
func (p *presolve) rows() {
	for len(p.dirty) > 0 {
		i := p.dirty[len(p.dirty)-1]
		p.dirty = p.dirty[:len(p.dirty)-1]
		if p.rowOn[i] {
			p.row(i)
		}
	}
}

// row removes row i if it is redundant or has one variable.
func (p *presolve) row(i int) {
	if p.inRow[i] == 1 {
		p.singleton(i)
		return
	}
	low, high, size := 0.0, 0.0, 0.0
	for k := p.byRow.Ptr[i]; k < p.byRow.Ptr[i+1]; k++ {
		j, v := p.byRow.Idx[k], p.byRow.Val[k]
		a, b := v*p.l[j], v*p.u[j]
		if !p.colOn[j] {
			a, b = v*p.value[j], v*p.value[j]
		}
		low, high = low+math.Min(a, b), high+math.Max(a, b)
		size = math.Max(size, math.Max(math.Abs(a), math.Abs(b)))
	}
	slack := 1e-12 * size // of rounding in the sums
	if math.IsInf(size, 0) {
		slack = 0
	}
	if low >= p.lr[i]+slack && high <= p.ur[i]-slack || p.inRow[i] == 0 && low >= p.lr[i]-slack && high <= p.ur[i]+slack {
		p.drop(i)
		p.steps = append(p.steps, step{row: i, col: -1, kept: -1})
	}
}

// singleton converts row i, with one variable left, to bounds of that variable.
func (p *presolve) singleton(i int) {
	j, coef, fixed := -1, 0.0, 0.0
	for k := p.byRow.Ptr[i]; k < p.byRow.Ptr[i+1]; k++ {
		if c := p.byRow.Idx[k]; p.colOn[c] {
			j, coef = c, p.byRow.Val[k]
		} else {
			fixed += p.byRow.Val[k] * p.value[c]
		}
	}
	if p.replace(step{row: i, col: j, coef: coef, kept: -1}, fixed, &p.l[j], &p.u[j]) {
		p.touch(j)
		p.settle(j)
	}
}

// replace removes the row of s after it has tightened lower and upper, the bounds of the column or the row that s names,
// by its own bounds less shift and divided by the coefficient. Bounds that would cross are infeasible or rounding: the
// row stays for the solver to decide, and replace returns false.
func (p *presolve) replace(s step, shift float64, lower, upper *float64) bool {
	low, high := (p.lr[s.row]-shift)/s.coef, (p.ur[s.row]-shift)/s.coef
	if s.coef < 0 {
		low, high = high, low
	}
	s.setLower, s.setUpper = low > *lower, high < *upper
	low, high = math.Max(low, *lower), math.Min(high, *upper)
	if low > high {
		return false
	}
	*lower, *upper = low, high
	p.steps = append(p.steps, s)
	p.drop(s.row)
	return true
}

// drop removes row i.
func (p *presolve) drop(i int) {
	p.rowOn[i] = false
	for k := p.byRow.Ptr[i]; k < p.byRow.Ptr[i+1]; k++ {
		if j := p.byRow.Idx[k]; p.colOn[j] {
			p.inCol[j]--
			p.settle(j)
		}
	}
}

// settle removes column j if it is fixed, or in no row with a finite best value.
func (p *presolve) settle(j int) {
	if !p.colOn[j] {
		return
	}
	value := p.l[j]
	if p.l[j] != p.u[j] {
		if p.inCol[j] > 0 {
			return
		}
		c := p.f.c[j]
		switch {
		case c < 0:
			value = p.u[j]
		case c == 0:
			value = math.Max(p.l[j], math.Min(p.u[j], 0))
		}
		if math.IsInf(value, 0) {
			return
		}
	}
	p.colOn[j], p.value[j] = false, value
	for k := p.f.a.Ptr[j]; k < p.f.a.Ptr[j+1]; k++ {
		p.inRow[p.f.a.Idx[k]]--
	}
	p.touch(j)
}

// touch queues the rows of column j for another look.
func (p *presolve) touch(j int) {
	for k := p.f.a.Ptr[j]; k < p.f.a.Ptr[j+1]; k++ {
		if i := p.f.a.Idx[k]; p.rowOn[i] {
			p.dirty = append(p.dirty, i)
		}
	}
}

// multiples merges rows that are multiples of each other; the kept row gets the tighter bounds.
func (p *presolve) multiples() {
	first := map[uint64][]int{}
	for i, on := range p.rowOn {
		if !on || p.inRow[i] == 0 {
			continue
		}
		h, lead := p.signature(i)
		kept := -1
		var ratio float64
		for _, r := range first[h] {
			_, other := p.signature(r)
			if ratio = lead / other; p.isMultiple(i, r, ratio) {
				kept = r
				break
			}
		}
		if kept < 0 {
			first[h] = append(first[h], i)
			continue
		}
		shift := p.fixedPart(i) - ratio*p.fixedPart(kept)
		p.replace(step{row: i, kept: kept, col: -1, coef: ratio}, shift, &p.lr[kept], &p.ur[kept])
	}
}

// signature returns a hash of the pattern of row i over columns that are on, and its first coefficient.
func (p *presolve) signature(i int) (h uint64, lead float64) {
	h = 14695981039346656037 // FNV-1a
	for k := p.byRow.Ptr[i]; k < p.byRow.Ptr[i+1]; k++ {
		if j := p.byRow.Idx[k]; p.colOn[j] {
			h = (h ^ uint64(j)) * 1099511628211
			if lead == 0 {
				lead = p.byRow.Val[k]
			}
		}
	}
	return h, lead
}

// isMultiple reports whether row i is ratio times row r, exactly or but for one rounding.
func (p *presolve) isMultiple(i, r int, ratio float64) bool {
	a, b := p.byRow.Ptr[i], p.byRow.Ptr[r]
	for {
		for a < p.byRow.Ptr[i+1] && !p.colOn[p.byRow.Idx[a]] {
			a++
		}
		for b < p.byRow.Ptr[r+1] && !p.colOn[p.byRow.Idx[b]] {
			b++
		}
		if a == p.byRow.Ptr[i+1] || b == p.byRow.Ptr[r+1] {
			return a == p.byRow.Ptr[i+1] && b == p.byRow.Ptr[r+1]
		}
		want := ratio * p.byRow.Val[b]
		if p.byRow.Idx[a] != p.byRow.Idx[b] || math.Abs(p.byRow.Val[a]-want) > 4e-16*math.Abs(want) {
			return false
		}
		a++
		b++
	}
}

// fixedPart returns the contribution of removed columns to row i.
func (p *presolve) fixedPart(i int) float64 {
	sum := 0.0
	for k := p.byRow.Ptr[i]; k < p.byRow.Ptr[i+1]; k++ {
		if j := p.byRow.Idx[k]; !p.colOn[j] {
			sum += p.byRow.Val[k] * p.value[j]
		}
	}
	return sum
}

// reduced returns the remaining form with its rows and columns.
func (p *presolve) reduced() (small *form, rows, cols []int) {
	at := make([]int, p.f.a.Rows)
	small = &form{a: &sparse.Matrix{Ptr: []int{0}}}
	for i, on := range p.rowOn {
		if on {
			at[i] = len(rows)
			rows = append(rows, i)
			shift := p.fixedPart(i)
			small.lr, small.ur = append(small.lr, p.lr[i]-shift), append(small.ur, p.ur[i]-shift)
		}
	}
	for j, on := range p.colOn {
		if !on {
			continue
		}
		cols = append(cols, j)
		small.c, small.l, small.u = append(small.c, p.f.c[j]), append(small.l, p.l[j]), append(small.u, p.u[j])
		for k := p.f.a.Ptr[j]; k < p.f.a.Ptr[j+1]; k++ {
			if i := p.f.a.Idx[k]; p.rowOn[i] {
				small.a.Idx, small.a.Val = append(small.a.Idx, at[i]), append(small.a.Val, p.f.a.Val[k])
			}
		}
		small.a.Ptr = append(small.a.Ptr, len(small.a.Idx))
	}
	small.a.Rows, small.a.Cols = len(rows), len(cols)
	return small, rows, cols
}

// restore converts an optimum of the reduced form to one of f.
func (p *presolve) restore(sx, sy []float64, rows, cols []int) (x, y []float64) {
	x, y = slices.Clone(p.value), make([]float64, p.f.a.Rows)
	for k, j := range cols {
		x[j] = sx[k]
	}
	for k, i := range rows {
		y[i] = sy[k]
	}
	for k := len(p.steps) - 1; k >= 0; k-- {
		switch s := p.steps[k]; {
		case s.kept >= 0:
			p.restoreMultiple(s, y)
		case s.col >= 0:
			p.restoreSingleton(s, y)
		}
	}
	return x, y
}

// restoreMultiple moves the dual of the kept row to the row with the active bound.
func (p *presolve) restoreMultiple(s step, y []float64) {
	if v := y[s.kept]; v > 0 && s.setLower || v < 0 && s.setUpper {
		y[s.row], y[s.kept] = v/s.coef, 0
	}
}

// restoreSingleton moves the column's reduced cost to the row if the bound set by that row is active.
func (p *presolve) restoreSingleton(s step, y []float64) {
	d := p.f.c[s.col] - p.f.a.Dot(s.col, y)
	if d > 0 && s.setLower || d < 0 && s.setUpper {
		y[s.row] = d / s.coef
	}
}
