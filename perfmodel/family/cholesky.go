package family

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// A cholesky is the upper triangle U of a symmetric positive definite matrix
// A = Uᵀ·U, on gonum's BLAS and LAPACK.
type cholesky struct{ u blas64.Triangular }

// newCholesky factors the n x n matrix whose elements on and below the
// diagonal are at(i, j). It reports false if the matrix is not positive
// definite and finite.
func newCholesky(n int, at func(i, j int) float64) (cholesky, bool) {
	a := blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: make([]float64, n*n)}
	for i := range n {
		for j := 0; j <= i; j++ {
			a.Data[j*n+i] = at(i, j)
		}
	}
	u, ok := lapack64.Potrf(a)
	for i := 0; ok && i < n; i++ {
		ok = !math.IsInf(u.Data[i*n+i], 0)
	}
	return cholesky{u}, ok
}

// forward solves Uᵀ·x = b in place.
func (c cholesky) forward(b []float64) {
	blas64.Trsv(blas.Trans, c.u, blas64.Vector{N: len(b), Data: b, Inc: 1})
}

// backward solves U·x = b in place.
func (c cholesky) backward(b []float64) {
	blas64.Trsv(blas.NoTrans, c.u, blas64.Vector{N: len(b), Data: b, Inc: 1})
}

// solve solves A·x = b in place.
func (c cholesky) solve(b []float64) {
	c.forward(b)
	c.backward(b)
}

func dot(a, b []float64) float64 {
	return blas64.Dot(blas64.Vector{N: len(a), Data: a, Inc: 1}, blas64.Vector{N: len(b), Data: b, Inc: 1})
}
