package family

import "math"

// A cholesky is the lower triangle L of a symmetric positive definite matrix
// A = L·Lᵀ, row by row: L[i][j] lies at i(i+1)/2 + j.
type cholesky struct {
	n int
	l []float64
}

// newCholesky factors the n x n matrix whose elements on and below the
// diagonal are at(i, j). It reports false if the matrix is not positive
// definite, NaN included.
func newCholesky(n int, at func(i, j int) float64) (cholesky, bool) {
	c := cholesky{n: n, l: make([]float64, n*(n+1)/2)}
	for i := range n {
		ri := c.row(i)
		for j := 0; j <= i; j++ {
			s := at(i, j)
			for k, v := range c.row(j)[:j] {
				s -= ri[k] * v
			}
			if i != j {
				ri[j] = s / c.row(j)[j]
				continue
			}
			if !(s > 0) || math.IsInf(s, 0) {
				return cholesky{}, false
			}
			ri[i] = math.Sqrt(s)
		}
	}
	return c, true
}

func (c cholesky) row(i int) []float64 { return c.l[i*(i+1)/2 : i*(i+1)/2+i+1] }

// forward solves L·x = b in place.
func (c cholesky) forward(b []float64) {
	for i := range c.n {
		r, s := c.row(i), b[i]
		for k, v := range r[:i] {
			s -= v * b[k]
		}
		b[i] = s / r[i]
	}
}

// solve solves A·x = b in place.
func (c cholesky) solve(b []float64) {
	c.forward(b)
	c.backward(b)
}

// backward solves Lᵀ·x = b in place.
func (c cholesky) backward(b []float64) {
	for i := c.n - 1; i >= 0; i-- {
		s := b[i]
		for k := i + 1; k < c.n; k++ {
			s -= c.row(k)[i] * b[k]
		}
		b[i] = s / c.row(i)[i]
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}
