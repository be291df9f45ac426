package nnls

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// ErrNotFinite means that the problem contains NaN or infinities.
var ErrNotFinite = errors.New("nnls: not finite")

// maxCondition is the condition number from which columns count as dependent. The solution of a further
// dependent column is 0.
const maxCondition = 1e8

// tolerance is the smallest gain, relative to b, for which a column is added.
const tolerance = 1e-12

// Solve returns x >= 0 that minimises ‖a·x - b‖, where a has rows x columns, b has rows and x has columns
// elements. If columns are dependent, there are several such x, and the result has 0 for the later columns.
// Columns may have any scale: they are normalised to unit length. The slice belongs to the caller. It is an
// error if b has another length, or ErrNotFinite.
func Solve(a *mat.Dense, b []float64) ([]float64, error) {
	rows, columns := a.Dims()
	if len(b) != rows {
		return nil, fmt.Errorf("nnls: %d right-hand sides for %d rows", len(b), rows)
	}
	s := &solver{b: b, x: make([]float64, columns), passive: make([]bool, columns)}
	length := make([]float64, columns)
	for j := range columns {
		col := mat.Col(nil, j, a)
		length[j] = floats.Norm(col, 2)
		if length[j] > 0 {
			floats.Scale(1/length[j], col)
		}
		s.columns = append(s.columns, col)
	}
	if norm := floats.Norm(b, 2) + floats.Sum(length); math.IsNaN(norm) || math.IsInf(norm, 0) {
		return nil, ErrNotFinite
	}
	s.run()
	for j, l := range length {
		if l > 0 {
			s.x[j] /= l
		}
	}
	return s.x, nil
}

// solver is the state of one Solve, with columns of unit length.
type solver struct {
	columns [][]float64
	b       []float64
	x       []float64
	passive []bool // columns with a free x; the x of all others is 0
}

// run adds, one by one, the column that lowers the error most, and removes columns that become negative.
func (s *solver) run() {
	enough := tolerance * floats.Norm(s.b, 2)
	barred := make([]bool, len(s.x)) // columns that depend on the passive ones
	for range 3 * len(s.x) {
		gain := s.gains()
		best := -1
		for j, g := range gain {
			if !s.passive[j] && !barred[j] && g > enough && (best < 0 || g > gain[best]) {
				best = j
			}
		}
		if best < 0 {
			return
		}
		s.passive[best] = true
		z, ok := s.free()
		if !ok || z[best] <= 0 {
			s.passive[best], barred[best] = false, true
			continue
		}
		clear(barred)
		s.settle(z)
	}
}

// gains returns the derivative of half the squared error by -x.
func (s *solver) gains() []float64 {
	residual := append([]float64(nil), s.b...)
	for j, col := range s.columns {
		floats.AddScaled(residual, -s.x[j], col)
	}
	out := make([]float64, len(s.x))
	for j, col := range s.columns {
		out[j] = floats.Dot(col, residual)
	}
	return out
}

// free returns the unconstrained solution on the passive columns; ok is false if these are dependent.
func (s *solver) free() (z []float64, ok bool) {
	var at []int
	for j, p := range s.passive {
		if p {
			at = append(at, j)
		}
	}
	if len(at) > len(s.b) {
		return nil, false
	}
	a := mat.NewDense(len(s.b), len(at), nil)
	for k, j := range at {
		a.SetCol(k, s.columns[j])
	}
	var qr mat.QR
	qr.Factorize(a)
	if !(qr.Cond() < maxCondition) {
		return nil, false
	}
	var v mat.VecDense
	if err := qr.SolveVecTo(&v, false, mat.NewVecDense(len(s.b), s.b)); err != nil {
		return nil, false
	}
	z = make([]float64, len(s.x))
	for k, j := range at {
		z[j] = v.AtVec(k)
	}
	return z, true
}

// settle moves x to z, the solution on the passive columns. If z has negative elements, it moves as far as x
// stays non-negative, removes the column that became 0, and solves again.
func (s *solver) settle(z []float64) {
	for {
		share, first := math.Inf(1), -1 // the first column to become 0
		for j, p := range s.passive {
			if !p || z[j] > 0 {
				continue
			}
			if to := s.x[j] / (s.x[j] - z[j]); to < share {
				share, first = to, j
			}
		}
		if first < 0 {
			copy(s.x, z)
			return
		}
		for j, p := range s.passive {
			if p {
				s.x[j] = max(s.x[j]+share*(z[j]-s.x[j]), 0)
			}
		}
		s.x[first], s.passive[first] = 0, false
		var ok bool
		if z, ok = s.free(); !ok {
			return
		}
	}
}
