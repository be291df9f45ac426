package lp

import (
	"math"
	"slices"
)

// mixture finds the best convex combination of points that keeps every row at or below zero,
//
//	maximise Σ_i w_i t_i  subject to  Σ_i w_i v_ik <= 0 by row k,  Σ_i w_i = 1,  w >= 0,
//
// by the primal simplex method. Each solve starts from the last basis. Rows are few, so every step refactors the
// basis.
type mixture struct {
	rows   int
	t      []float64
	v      [][]float64 // by point and row
	basis  []int       // points, or rows as -1-k for their slacks; rows+1 of them
	weight []float64   // by place in the basis
	price  []float64   // dual by row, then the dual of the sum, which is the value

	cells  []float64   // scratch of invert: matrix entries
	matrix [][]float64 // scratch of invert: matrix rows
	col    []float64   // scratch of column
}

const (
	mixPivot    = 1e-11 // least pivot
	mixRounding = 1e-13 // gains below this share of their terms are rounding
	mixBland    = 50    // steps without gain before Bland's rule applies, which prevents cycles
)

// newMixture returns a mixture with a first point; its v must not be positive.
func newMixture(t float64, v []float64) *mixture {
	m := &mixture{}
	m.reset(len(v))
	m.add(t, v)
	return m
}

// reset removes all points and keeps the memory.
func (m *mixture) reset(rows int) {
	m.rows, m.t, m.v, m.basis = rows, m.t[:0], m.v[:0], m.basis[:0]
	for k := range rows {
		m.basis = append(m.basis, -1-k)
	}
	m.basis = append(m.basis, 0)
}

// add adds a point. v of the first point must not be positive.
func (m *mixture) add(t float64, v []float64) {
	m.t, m.v = append(m.t, t), append(m.v, v)
}

// solve finds the optimum and reports whether it succeeded.
func (m *mixture) solve() bool {
	stuck, last := 0, math.Inf(-1)
	for range 200 + 20*len(m.t) {
		inv, ok := m.invert()
		if !ok {
			return false
		}
		m.read(inv)
		value := m.price[m.rows]
		if value > last {
			stuck, last = 0, value
		} else {
			stuck++
		}
		enter, ok := m.entering(stuck > mixBland)
		if !ok {
			return true
		}
		if !m.pivot(inv, enter, stuck > mixBland) {
			return false
		}
	}
	return false
}

// column returns the constraint column of a point or slack; the next call overwrites it.
func (m *mixture) column(i int) []float64 {
	m.col = sized(m.col, m.rows+1)
	col := m.col
	clear(col)
	if i < 0 {
		col[-1-i] = 1
		return col
	}
	copy(col, m.v[i])
	col[m.rows] = 1
	return col
}

// invert returns the inverse of the basis matrix, by Gauss-Jordan elimination with row pivots; the next call
// overwrites it.
func (m *mixture) invert() ([][]float64, bool) {
	n := m.rows + 1
	m.cells, m.matrix = sized(m.cells, 2*n*n), sized(m.matrix, n)
	clear(m.cells)
	a := m.matrix // [B | I], by row
	for i := range a {
		a[i] = m.cells[2*n*i : 2*n*(i+1)]
		a[i][n+i] = 1
	}
	for j, b := range m.basis {
		for i, v := range m.column(b) {
			a[i][j] = v
		}
	}
	for j := range n {
		p := j
		for i := j + 1; i < n; i++ {
			if math.Abs(a[i][j]) > math.Abs(a[p][j]) {
				p = i
			}
		}
		if a[p][j] == 0 {
			return nil, false
		}
		a[j], a[p] = a[p], a[j]
		for k, s := 0, a[j][j]; k < 2*n; k++ {
			a[j][k] /= s
		}
		for i := range n {
			if s := a[i][j]; i != j && s != 0 {
				for k := range a[i] {
					a[i][k] -= s * a[j][k]
				}
			}
		}
	}
	for i := range a {
		a[i] = a[i][n:]
	}
	return a, true
}

// read computes weights and prices from the inverse of the basis.
func (m *mixture) read(inv [][]float64) {
	n := m.rows + 1
	m.weight, m.price = sized(m.weight, n), sized(m.price, n)
	clear(m.price)
	for i, b := range m.basis {
		m.weight[i] = inv[i][m.rows] // the right side is 1 in the last row
		if b >= 0 {
			for k := range n {
				m.price[k] += m.t[b] * inv[i][k]
			}
		}
	}
}

// entering returns the point or slack with the largest gain above rounding, or with first the first one.
func (m *mixture) entering(first bool) (int, bool) {
	best, at, found := 0.0, 0, false
	consider := func(i int, gain, size float64) bool {
		if gain > mixRounding*size && gain > best && !slices.Contains(m.basis, i) {
			best, at, found = gain, i, true
		}
		return found && first
	}
	most := 0.0
	for _, p := range m.price {
		most = math.Max(most, math.Abs(p))
	}
	for k := range m.rows {
		if consider(-1-k, -m.price[k], most) {
			return at, true
		}
	}
	for i, v := range m.v {
		gain, size := m.t[i]-m.price[m.rows], math.Abs(m.t[i])+math.Abs(m.price[m.rows])
		for k, x := range v {
			gain -= m.price[k] * x
			size += math.Abs(m.price[k] * x)
		}
		if consider(i, gain, size) {
			return at, true
		}
	}
	return at, found
}

// pivot brings enter into the basis in place of the first weight that reaches zero. Ties go to the largest pivot, or
// with lowest to the lowest index. It reports whether a pivot exists; without rounding one does, since weights sum to
// one.
func (m *mixture) pivot(inv [][]float64, enter int, lowest bool) bool {
	col := m.column(enter)
	leave, least, size := -1, math.Inf(1), 0.0
	for i, row := range inv {
		d := 0.0
		for k, v := range row {
			d += v * col[k]
		}
		if d < mixPivot {
			continue
		}
		ratio := math.Max(0, m.weight[i]) / d
		better := ratio < least-1e-15
		if !better && ratio <= least+1e-15 {
			better = d > size
			if lowest {
				better = m.basis[i] < m.basis[leave]
			}
		}
		if better {
			leave, least, size = i, math.Min(ratio, least), d
		}
	}
	if leave < 0 {
		return false
	}
	m.basis[leave] = enter
	return true
}

// weights returns the weight of every point, 0 before the first solve.
func (m *mixture) weights() []float64 {
	w := make([]float64, len(m.t))
	for i, b := range m.basis {
		if b >= 0 && i < len(m.weight) {
			w[b] = math.Max(0, m.weight[i])
		}
	}
	return w
}
