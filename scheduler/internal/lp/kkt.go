package lp

import (
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/lp/sparse"
)

// kkt solves the linear systems of the interior-point method,
//
//	[ -D  A' ] [dx]   [r1]
//	[  A  0  ] [dy] = [r2]
//
// with D diagonal, positive, and zero for free variables. Columns with few entries are eliminated (their part of the
// normal equations A D⁻¹ A'); those that are dense, which would make every row meet every other, and free ones, which
// cannot be divided by, stay in the matrix:
//
//	[ A_e D_e⁻¹ A_e'   A_k  ] [dy  ]
//	[ A_k'            -D_k  ] [dx_k]
//
// It is quasi-definite once small multiples of the identity are added; iterative refinement against the system above
// takes out what they changed.
type kkt struct {
	a        *sparse.Matrix
	free     []bool
	d        []float64
	accuracy float64
	kept     []int // columns that stay
	keep     []bool

	s      *sparse.Upper
	factor *sparse.LDL
	diag   []int   // where the diagonal of s is, by row of s
	coef   []int32 // for each eliminated column, the places of its products in s, in the order of products
	fixed  []fixedEntry
	// Work space.
	rhs, res1, res2, x, y []float64
}

// fixedEntry is an entry of s that does not depend on D: one of A_k, by its index in the entries of a.
type fixedEntry struct{ at, entry int }

// Tolerances and limits of the factorization.
const (
	rowShift  = 1e-15 // added to the diagonal of rows, relative to it or 1
	keptShift = 1e-8  // subtracted from the diagonal of kept columns and added to that of their rows
	minDense  = 24    // columns with fewer entries are never dense
	refineFor = 4     // limit of iterative refinement steps
	refineTo  = 1e-13 // residual that ends refinement, relative to the right side
)

// newKKT prepares systems with the matrix a; free marks columns with D = 0.
func newKKT(a *sparse.Matrix, free []bool) *kkt {
	k := &kkt{a: a, free: free, keep: make([]bool, a.Cols), d: make([]float64, a.Cols)}
	limit := denseLimit(a)
	for j := range a.Cols {
		if free[j] || a.Ptr[j+1]-a.Ptr[j] > limit {
			k.keep[j] = true
			k.kept = append(k.kept, j)
		}
	}
	k.pattern()
	signs := append(ones(a.Rows), slices.Repeat([]float64{-1}, len(k.kept))...)
	k.factor = sparse.NewLDL(k.s, signs)
	k.s.Val = make([]float64, len(k.s.Idx))
	k.rhs = make([]float64, k.s.N)
	k.res1, k.x = make([]float64, a.Cols), make([]float64, a.Cols)
	k.res2, k.y = make([]float64, a.Rows), make([]float64, a.Rows)
	return k
}

// denseLimit returns the number of entries above which a column is kept. Such a column alone would add more products
// to the normal equations than ten average columns.
func denseLimit(a *sparse.Matrix) int {
	products := 0.0
	for j := range a.Cols {
		c := float64(a.Ptr[j+1] - a.Ptr[j])
		if c <= minDense {
			products += c * c
		}
	}
	return max(minDense, int(math.Sqrt(products/4)))
}

// pattern builds the upper triangle of s and the position of every product in it.
func (k *kkt) pattern() {
	a := k.a
	byRow := a.Transpose()
	n := a.Rows + len(k.kept)
	s := &sparse.Upper{N: n, Ptr: make([]int, n+1)}
	k.diag = make([]int, n)
	where := make([]int, a.Rows) // place of row i in the present column of s
	seen := slices.Repeat([]int{-1}, a.Rows)
	// Column r of s: the rows i <= r that share an eliminated column with r.
	for r := range a.Rows {
		start := len(s.Idx)
		for p := byRow.Ptr[r]; p < byRow.Ptr[r+1]; p++ {
			j := byRow.Idx[p]
			if k.keep[j] {
				continue
			}
			for q := a.Ptr[j]; q < a.Ptr[j+1] && a.Idx[q] <= r; q++ {
				if i := a.Idx[q]; seen[i] != r {
					seen[i] = r
					s.Idx = append(s.Idx, i)
				}
			}
		}
		if seen[r] != r {
			s.Idx = append(s.Idx, r)
		}
		slices.Sort(s.Idx[start:])
		k.diag[r] = len(s.Idx) - 1
		s.Ptr[r+1] = len(s.Idx)
	}
	for c, j := range k.kept {
		for q := a.Ptr[j]; q < a.Ptr[j+1]; q++ {
			k.fixed = append(k.fixed, fixedEntry{len(s.Idx), q})
			s.Idx = append(s.Idx, a.Idx[q])
		}
		r := a.Rows + c
		k.diag[r] = len(s.Idx)
		s.Idx = append(s.Idx, r)
		s.Ptr[r+1] = len(s.Idx)
	}
	k.s = s
	k.places(byRow, where)
}

// places records the position in s of the product of each pair of rows i <= r of each eliminated column.
func (k *kkt) places(byRow *sparse.Matrix, where []int) {
	a := k.a
	start := make([]int, a.Cols+1)
	for j := range a.Cols {
		c := a.Ptr[j+1] - a.Ptr[j]
		if k.keep[j] {
			c = 0
		}
		start[j+1] = start[j] + c*(c+1)/2
	}
	k.coef = make([]int32, start[a.Cols])
	next := start[:a.Cols]
	for r := range a.Rows {
		for p := k.s.Ptr[r]; p < k.s.Ptr[r+1]; p++ {
			where[k.s.Idx[p]] = p
		}
		for p := byRow.Ptr[r]; p < byRow.Ptr[r+1]; p++ {
			j := byRow.Idx[p]
			if k.keep[j] {
				continue
			}
			for q := a.Ptr[j]; q < a.Ptr[j+1] && a.Idx[q] <= r; q++ {
				k.coef[next[j]] = int32(where[a.Idx[q]])
				next[j]++
			}
		}
	}
}

// set factors the system with the diagonal d, which is copied. Later solutions reach residuals of accuracy, relative
// to the right side, or the least reachable.
func (k *kkt) set(d []float64, accuracy float64) {
	k.accuracy = math.Max(refineTo, accuracy)
	a, val := k.a, k.s.Val
	copy(k.d, d)
	clear(val)
	at := 0
	for j := range a.Cols {
		if k.keep[j] {
			continue
		}
		theta := 1 / d[j]
		rows := a.Val[a.Ptr[j]:a.Ptr[j+1]]
		for r, vr := range rows {
			t := theta * vr
			for _, vi := range rows[:r+1] {
				val[k.coef[at]] += t * vi
				at++
			}
		}
	}
	for _, f := range k.fixed {
		val[f.at] = a.Val[f.entry]
	}
	for r := range a.Rows {
		val[k.diag[r]] += rowShift * (val[k.diag[r]] + 1)
	}
	for c, j := range k.kept {
		val[k.diag[a.Rows+c]] = -d[j] - keptShift
		if d[j] == 0 {
			for q := a.Ptr[j]; q < a.Ptr[j+1]; q++ {
				val[k.diag[a.Idx[q]]] += keptShift
			}
		}
	}
	k.factor.Factor(val)
}

// solve sets dx, dy to the solution for the right side r1, r2.
func (k *kkt) solve(dx, dy, r1, r2 []float64) {
	k.once(dx, dy, r1, r2)
	goal := k.accuracy * (maxAbs(r1) + maxAbs(r2))
	last := math.Inf(1)
	for range refineFor {
		res := k.residual(dx, dy, r1, r2)
		if res <= goal || res >= last*0.9 {
			break
		}
		last = res
		k.once(k.x, k.y, k.res1, k.res2)
		addTimes(dx, 1, k.x)
		addTimes(dy, 1, k.y)
	}
}

// residual computes the remainder of the right side and returns its largest entry.
func (k *kkt) residual(dx, dy, r1, r2 []float64) float64 {
	a, res2 := k.a, k.res2
	copy(res2, r2)
	most := 0.0
	for j := range a.Cols {
		dxj, sum := dx[j], 0.0
		rows, vals := a.Column(j)
		for q, i := range rows {
			sum += vals[q] * dy[i]
			res2[i] -= vals[q] * dxj
		}
		k.res1[j] = r1[j] + k.d[j]*dxj - sum
		if size := math.Abs(k.res1[j]); size > most {
			most = size
		}
	}
	return math.Max(most, maxAbs(res2))
}

// once solves without refinement.
func (k *kkt) once(dx, dy, r1, r2 []float64) {
	a := k.a
	copy(k.rhs, r2)
	for j := range a.Cols {
		if k.keep[j] {
			continue
		}
		if t := r1[j] / k.d[j]; t != 0 {
			rows, vals := a.Column(j)
			for q, i := range rows {
				k.rhs[i] += vals[q] * t
			}
		}
	}
	for c, j := range k.kept {
		k.rhs[a.Rows+c] = r1[j]
	}
	k.factor.Solve(k.rhs)
	copy(dy, k.rhs)
	for j := range a.Cols {
		if !k.keep[j] {
			dx[j] = (a.Dot(j, dy) - r1[j]) / k.d[j]
		}
	}
	for c, j := range k.kept {
		dx[j] = k.rhs[a.Rows+c]
	}
}

// maxAbs returns the largest absolute entry, ignoring NaN.
func maxAbs(v []float64) float64 {
	most := 0.0
	for _, x := range v {
		if size := math.Abs(x); size > most {
			most = size
		}
	}
	return most
}
