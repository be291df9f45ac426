package sparse

import (
	"math"
	"slices"
)

// LDL factors symmetric matrices P'SP = L D L' of one pattern, with L unit lower triangular and D diagonal. S must be
// quasi-definite, that is of the form [E A'; A -F] with E and F positive definite, in any order of its rows: then the
// factors exist for every P (Vanderbei, Symmetric quasidefinite matrices, SIAM J. Optim. 5(1), 1995). Row k of L is
// found from a triangular system with the rows before it, along the elimination tree (Davis, Direct Methods for Sparse
// Linear Systems, SIAM 2006, section 4.8).
type LDL struct {
	n      int
	order  []int // row order[k] of S is the k-th pivot
	place  []int // where entry k of S went in val
	ptr    []int // upper triangle of P'SP by columns, its diagonal apart
	idx    []int
	val    []float64
	diagAt []int // where the diagonal of each column is in S's entries
	parent []int // elimination tree, -1 at roots
	sign   []float64

	lptr []int
	lidx []int
	lval []float64
	d    []float64
	// Work space, by pivot.
	next, mark, stack, path []int
	y, x                    []float64
}

// Upper is the upper triangle of a symmetric matrix by columns: entries have row <= column, and each column has its
// diagonal.
type Upper struct {
	N   int
	Ptr []int // N+1
	Idx []int
	Val []float64
}

// NewLDL prepares to factor matrices with the pattern of s. Signs has 1 for the rows of the positive definite part and
// -1 for those of the negative one.
func NewLDL(s *Upper, signs []float64) *LDL {
	f := &LDL{n: s.N, order: Order(s)}
	f.permute(s, signs)
	f.analyze()
	n := s.N
	f.lidx = make([]int, f.lptr[n])
	f.lval = make([]float64, f.lptr[n])
	f.d = make([]float64, n)
	f.next, f.mark = make([]int, n), make([]int, n)
	f.stack, f.path = make([]int, n), make([]int, n)
	f.y, f.x = make([]float64, n), make([]float64, n)
	return f
}

// Entries returns the number of entries of L below its diagonal.
func (f *LDL) Entries() int { return f.lptr[f.n] }

// permute lays out the upper triangle of P'SP.
func (f *LDL) permute(s *Upper, signs []float64) {
	n := s.N
	at := make([]int, n)
	for k, i := range f.order {
		at[i] = k
	}
	f.sign = make([]float64, n)
	f.diagAt = make([]int, n)
	f.ptr = make([]int, n+1)
	for j := range n {
		f.sign[at[j]] = signs[j]
		for k := s.Ptr[j]; k < s.Ptr[j+1]; k++ {
			if s.Idx[k] != j {
				f.ptr[max(at[j], at[s.Idx[k]])+1]++
			}
		}
	}
	for k := range n {
		f.ptr[k+1] += f.ptr[k]
	}
	f.idx = make([]int, f.ptr[n])
	f.val = make([]float64, f.ptr[n])
	f.place = make([]int, len(s.Idx))
	next := slices.Clone(f.ptr[:n])
	for j := range n {
		for k := s.Ptr[j]; k < s.Ptr[j+1]; k++ {
			if s.Idx[k] == j {
				f.diagAt[at[j]], f.place[k] = k, -1
				continue
			}
			a, b := at[j], at[s.Idx[k]]
			col := max(a, b)
			f.idx[next[col]], f.place[k] = min(a, b), next[col]
			next[col]++
		}
	}
}

// analyze finds the elimination tree and the number of entries in each column of L.
func (f *LDL) analyze() {
	n := f.n
	f.parent = make([]int, n)
	f.lptr = make([]int, n+1)
	seen := make([]int, n)
	for k := range n {
		f.parent[k], seen[k] = -1, k
		for p := f.ptr[k]; p < f.ptr[k+1]; p++ {
			for i := f.idx[p]; seen[i] != k; i = f.parent[i] {
				if f.parent[i] < 0 {
					f.parent[i] = k
				}
				f.lptr[i+1]++
				seen[i] = k
			}
		}
	}
	for k := range n {
		f.lptr[k+1] += f.lptr[k]
	}
}

// tinyPivot is where a pivot counts as zero, relative to the diagonal it came from.
const tinyPivot = 1e-15

// hugePivot replaces a zero pivot, so that its unknown becomes zero: the row depends on those before it.
const hugePivot = 1e100

// Factor computes the factors of the matrix with the entries val, in the places NewLDL saw.
func (f *LDL) Factor(val []float64) {
	for k, at := range f.place {
		if at >= 0 {
			f.val[at] = val[k]
		}
	}
	copy(f.next, f.lptr[:f.n])
	for i := range f.mark {
		f.mark[i] = -1
	}
	for k := range f.n {
		diag := val[f.diagAt[k]]
		d := f.row(k, diag)
		if d*f.sign[k] <= tinyPivot*math.Abs(diag) || d*f.sign[k] < math.SmallestNonzeroFloat64*1e20 {
			d = f.sign[k] * hugePivot
		}
		f.d[k] = d
	}
}

// row computes row k of L and returns the pivot that is left of diag.
func (f *LDL) row(k int, diag float64) float64 {
	f.mark[k] = k
	top := f.n
	for p := f.ptr[k]; p < f.ptr[k+1]; p++ {
		i := f.idx[p]
		f.y[i] = f.val[p]
		depth := 0
		for ; f.mark[i] != k; i = f.parent[i] {
			f.path[depth] = i
			f.mark[i] = k
			depth++
		}
		for depth > 0 {
			depth--
			top--
			f.stack[top] = f.path[depth]
		}
	}
	for _, i := range f.stack[top:] {
		yi := f.y[i]
		f.y[i] = 0
		from, to := f.lptr[i], f.next[i]
		rows, vals := f.lidx[from:to], f.lval[from:to]
		for q, r := range rows {
			f.y[r] -= vals[q] * yi
		}
		l := yi / f.d[i]
		diag -= l * yi
		f.lidx[to], f.lval[to] = k, l
		f.next[i]++
	}
	return diag
}

// Solve replaces b by the solution of S x = b.
func (f *LDL) Solve(b []float64) {
	x := f.x
	for k, i := range f.order {
		x[k] = b[i]
	}
	for k := range f.n {
		xk := x[k]
		if xk == 0 {
			continue
		}
		rows, vals := f.lidx[f.lptr[k]:f.lptr[k+1]], f.lval[f.lptr[k]:f.lptr[k+1]]
		for q, r := range rows {
			x[r] -= vals[q] * xk
		}
	}
	for k := f.n - 1; k >= 0; k-- {
		sum := x[k] / f.d[k]
		rows, vals := f.lidx[f.lptr[k]:f.lptr[k+1]], f.lval[f.lptr[k]:f.lptr[k+1]]
		for q, r := range rows {
			sum -= vals[q] * x[r]
		}
		x[k] = sum
	}
	for k, i := range f.order {
		b[i] = x[k]
	}
}
