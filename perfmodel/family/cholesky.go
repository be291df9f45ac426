package family

import (
	"math"
	"slices"

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
func newCholesky(n int, at func(i, j int) float64) (c cholesky, ok bool) {
	ok = c.factor(n, at)
	return c, ok
}

// factor is newCholesky in the memory of c.
func (c *cholesky) factor(n int, at func(i, j int) float64) bool {
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

// multiply replaces b by A·b.
func (c cholesky) multiply(b []float64) {
	v := blas64.Vector{N: len(b), Data: b, Inc: 1}
	blas64.Trmv(blas.NoTrans, c.u, v)
	blas64.Trmv(blas.Trans, c.u, v)
}

// logDet returns ln |A|.
func (c cholesky) logDet() (sum float64) {
	for i := range c.u.N {
		sum += math.Log(c.u.Data[i*c.u.Stride+i])
	}
	return 2 * sum
}

// inverseDiagonal returns the diagonal of A⁻¹.
func (c cholesky) inverseDiagonal() []float64 {
	u := c.u
	u.Data = slices.Clone(c.u.Data)
	inv, _ := lapack64.Potri(u) // fails only with a zero on the diagonal, which Potrf refuses
	out := make([]float64, inv.N)
	for i := range out {
		out[i] = inv.Data[i*inv.Stride+i]
	}
	return out
}

func dot(a, b []float64) float64 {
	return blas64.Dot(blas64.Vector{N: len(a), Data: a, Inc: 1}, blas64.Vector{N: len(b), Data: b, Inc: 1})
}
