package gp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// A Cholesky is the upper triangle U of a symmetric positive definite matrix A = Uᵀ·U. It uses gonum's BLAS and
// LAPACK.
type Cholesky struct{ u blas64.Triangular }

// NewCholesky factors the n x n matrix with elements at(i, j) on and below the diagonal. It reports false if
// the matrix is not positive definite and finite.
func NewCholesky(n int, at func(i, j int) float64) (c Cholesky, ok bool) {
	ok = c.factor(n, at)
	return c, ok
}

// factor is NewCholesky that reuses the memory of c.
func (c *Cholesky) factor(n int, at func(i, j int) float64) bool {
	a := blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: slices.Grow(c.u.Data[:0], n*n)[:n*n]}
	for i := range n {
		for j := 0; j <= i; j++ {
			a.Data[j*n+i] = at(i, j)
		}
	}
	var ok bool
	c.u, ok = lapack64.Potrf(a)
	for i := 0; ok && i < n; i++ {
		ok = !math.IsInf(c.u.Data[i*n+i], 0)
	}
	return ok
}

// Forward solves Uᵀ·x = b in place.
func (c Cholesky) Forward(b []float64) {
	blas64.Trsv(blas.Trans, c.u, blas64.Vector{N: len(b), Data: b, Inc: 1})
}

// Backward solves U·x = b in place.
func (c Cholesky) Backward(b []float64) {
	blas64.Trsv(blas.NoTrans, c.u, blas64.Vector{N: len(b), Data: b, Inc: 1})
}

// Solve solves A·x = b in place.
func (c Cholesky) Solve(b []float64) {
	c.Forward(b)
	c.Backward(b)
}

// Multiply replaces b by A·b.
func (c Cholesky) Multiply(b []float64) {
	blas64.Trmv(blas.NoTrans, c.u, blas64.Vector{N: len(b), Data: b, Inc: 1})
	c.Correlate(b)
}

// Correlate replaces b by Uᵀ·b. This gives independent standard normal values the covariance A.
func (c Cholesky) Correlate(b []float64) {
	blas64.Trmv(blas.Trans, c.u, blas64.Vector{N: len(b), Data: b, Inc: 1})
}

// logDet returns ln |A|.
func (c Cholesky) logDet() (sum float64) {
	for i := range c.u.N {
		sum += math.Log(c.u.Data[i*c.u.Stride+i])
	}
	return 2 * sum
}

// inverse returns A⁻¹; its upper triangle is valid.
func (c Cholesky) inverse() blas64.Symmetric {
	u := c.u
	u.Data = slices.Clone(c.u.Data)
	out, _ := lapack64.Potri(u) // fails only for a zero on the diagonal, which Potrf refuses
	return out
}

// InverseDiagonal returns the diagonal of A⁻¹.
func (c Cholesky) InverseDiagonal() []float64 {
	inv := c.inverse()
	out := make([]float64, inv.N)
	for i := range out {
		out[i] = inv.Data[i*inv.Stride+i]
	}
	return out
}

// Size returns n, 0 for the zero Cholesky.
func (c Cholesky) Size() int { return c.u.N }
