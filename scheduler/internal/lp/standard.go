package lp

import (
	"math"

	"github.com/pacer-ml/pacer/scheduler/internal/lp/sparse"
)

// standard is a form in the standard form of the interior-point method,
//
//	minimise c'x subject to A x = b, 0 <= x, x <= u where finite, except where free.
//
// Rows that are no equations get a slack. Columns are shifted and negated so that their lower bound is zero. Rows,
// columns, costs and right sides are scaled by powers of two, which is exact. Fixed columns and rows without bounds
// are omitted.
type standard struct {
	a    *sparse.Matrix
	b, c []float64
	u    []float64 // +Inf without an upper bound
	free []bool

	from     *form
	col      []int     // column of the form; -1 for slacks
	turn     []float64 // x of form = shift + turn * colScale * xScale * x, turn being 1 or -1
	shift    []float64 // by column of the form: its value at x = 0
	row      []int     // row of the form
	rowScale []float64
	colScale []float64
	xScale   float64 // divisor of right sides and bounds
	cScale   float64 // divisor of costs
}

// newStandard converts f to standard form. Bounds must not cross.
func newStandard(f *form) *standard {
	s := f.unscaled()
	s.scale()
	return s
}

// unscaled converts f to standard form without scaling. Bounds must not cross.
func (f *form) unscaled() *standard {
	s := &standard{from: f, shift: make([]float64, f.a.Cols), xScale: 1, cScale: 1}
	rowOf := s.keepRows()
	s.columns(rowOf)
	s.slacks()
	s.rightSide(rowOf)
	s.rowScale, s.colScale = ones(s.a.Rows), ones(s.a.Cols)
	return s
}

// keepRows lists the rows with a bound, and returns the new index of each row of the form, -1 if omitted.
func (s *standard) keepRows() []int {
	f := s.from
	rowOf := make([]int, f.a.Rows)
	for i := range rowOf {
		rowOf[i] = -1
		if !math.IsInf(f.lr[i], -1) || !math.IsInf(f.ur[i], 1) {
			rowOf[i] = len(s.row)
			s.row = append(s.row, i)
		}
	}
	return rowOf
}

// columns copies the columns that are not fixed.
func (s *standard) columns(rowOf []int) {
	f := s.from
	s.a = &sparse.Matrix{Rows: len(s.row), Ptr: []int{0}}
	for j := range f.a.Cols {
		lower, upper, turn, free := f.l[j], f.u[j], 1.0, false
		switch {
		case !math.IsInf(lower, -1):
			s.shift[j] = lower
		case !math.IsInf(upper, 1):
			s.shift[j], turn = upper, -1
		default:
			free = true
		}
		if lower == upper {
			continue
		}
		for k := f.a.Ptr[j]; k < f.a.Ptr[j+1]; k++ {
			if i := rowOf[f.a.Idx[k]]; i >= 0 {
				s.a.Idx = append(s.a.Idx, i)
				s.a.Val = append(s.a.Val, turn*f.a.Val[k])
			}
		}
		s.addColumn(j, turn, turn*f.c[j], upper-lower, free)
	}
}

// addColumn ends a column after its entries were appended.
func (s *standard) addColumn(from int, turn, cost, upper float64, free bool) {
	s.a.Ptr = append(s.a.Ptr, len(s.a.Idx))
	s.a.Cols++
	s.col = append(s.col, from)
	s.turn = append(s.turn, turn)
	s.c = append(s.c, cost)
	s.u = append(s.u, upper)
	s.free = append(s.free, free)
}

// slacks adds a slack to every row that is no equation: A x - s = lower with a lower bound, else A x + s = upper, with
// 0 <= s <= upper - lower.
func (s *standard) slacks() {
	for k, i := range s.row {
		lower, upper := s.from.lr[i], s.from.ur[i]
		if lower == upper {
			continue
		}
		sign := -1.0
		if math.IsInf(lower, -1) {
			sign = 1
		}
		s.a.Idx = append(s.a.Idx, k)
		s.a.Val = append(s.a.Val, sign)
		s.addColumn(-1, 1, 0, upper-lower, false)
	}
}

// rightSide sets b to the bound of each row minus the shifts. Differences within rounding become zero, so that they do
// not determine the scale.
func (s *standard) rightSide(rowOf []int) {
	f := s.from
	s.b = make([]float64, len(s.row))
	size := make([]float64, len(s.row))
	for k, i := range s.row {
		s.b[k] = f.lr[i]
		if math.IsInf(f.lr[i], -1) {
			s.b[k] = f.ur[i]
		}
		size[k] = math.Abs(s.b[k])
	}
	for j, v := range s.shift {
		if v == 0 {
			continue
		}
		for k := f.a.Ptr[j]; k < f.a.Ptr[j+1]; k++ {
			if i := rowOf[f.a.Idx[k]]; i >= 0 {
				s.b[i] -= f.a.Val[k] * v
				size[i] += math.Abs(f.a.Val[k] * v)
			}
		}
	}
	for i := range s.b {
		if math.Abs(s.b[i]) <= rounding*size[i] {
			s.b[i] = 0
		}
	}
}

// rounding is the relative error of a short sum, relative to the size of its terms.
const rounding = 1e-15

// solution returns x and y as a point and row duals of the form.
func (s *standard) solution(x, y []float64) (fx, fy []float64) {
	fx = append([]float64(nil), s.shift...)
	for k, j := range s.col {
		if j >= 0 {
			fx[j] += s.turn[k] * s.colScale[k] * s.xScale * x[k]
		}
	}
	return fx, s.rowDuals(y)
}

// rowDuals returns y as row duals of the form. A dual on a side without a bound becomes zero.
func (s *standard) rowDuals(y []float64) []float64 {
	fy := make([]float64, s.from.a.Rows)
	for k, i := range s.row {
		v := y[k] * s.rowScale[k] * s.cScale
		if _, wrong := multiplierTimesBound(v, s.from.lr[i], s.from.ur[i]); wrong == 0 {
			fy[i] = v
		}
	}
	return fy
}

// ray returns direction x as a direction of the form, with largest absolute entry 1.
func (s *standard) ray(x []float64) []float64 {
	r := make([]float64, s.from.a.Cols)
	for k, j := range s.col {
		if j >= 0 {
			r[j] = s.turn[k] * s.colScale[k] * x[k]
		}
	}
	if most := maxAbs(r); most > 0 {
		divide(r, most)
	}
	return r
}
