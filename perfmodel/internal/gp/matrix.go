package gp

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Dot returns the inner product of a and b.
func Dot(a, b []float64) float64 {
	return blas64.Dot(blas64.Vector{N: len(a), Data: a, Inc: 1}, blas64.Vector{N: len(b), Data: b, Inc: 1})
}

// Whiten returns the covariances cov of n values with the rows of c, whitened by c.
func (c Cholesky) Whiten(n, rows int, cov func(k, row int) float64) blas64.General {
	out := NewMatrix(n, rows)
	for k := range n {
		line := Line(out, k)
		for j := range line {
			line[j] = cov(k, j)
		}
		if rows > 0 {
			c.Forward(line)
		}
	}
	return out
}

// Line returns row k of a. The slice shares a's memory.
func Line(a blas64.General, k int) []float64 { return a.Data[k*a.Cols : (k+1)*a.Cols] }

// NewMatrix returns a zero matrix.
func NewMatrix(rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: max(cols, 1), Data: make([]float64, rows*cols)}
}

// PickRows returns a copy of some rows of a.
func PickRows(a blas64.General, rows []int) blas64.General {
	out := NewMatrix(len(rows), a.Cols)
	for i, r := range rows {
		copy(out.Data[i*a.Cols:(i+1)*a.Cols], a.Data[r*a.Cols:])
	}
	return out
}

// AddProduct adds alpha·a·bᵀ to c.
func AddProduct(alpha float64, a, b blas64.General, c []float64) {
	blas64.Gemm(blas.NoTrans, blas.Trans, alpha, a, b, 1, blas64.General{Rows: a.Rows, Cols: b.Rows, Stride: b.Rows, Data: c})
}
