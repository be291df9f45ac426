package sparse

import (
	"math"
	"math/rand/v2"
	"testing"
)

// randomColumns returns a sparse matrix of n rows and more columns, with sums of columns among them.
func randomColumns(r *rand.Rand, n int) *Matrix {
	a := &Matrix{Rows: n, Ptr: []int{0}}
	for range 2 * n {
		for i := range n {
			if r.IntN(n) < 3 {
				a.Idx, a.Val = append(a.Idx, i), append(a.Val, r.NormFloat64())
			}
		}
		if j := a.Cols - 1; j >= 1 && r.IntN(4) == 0 { // twice the column before instead
			from := a.Ptr[j+1]
			a.Idx = append(a.Idx[:from], a.Idx[a.Ptr[j]:from]...)
			a.Val = a.Val[:from]
			for _, v := range a.Val[a.Ptr[j]:from] {
				a.Val = append(a.Val, 2*v)
			}
		}
		a.Cols++
		a.Ptr = append(a.Ptr, len(a.Idx))
	}
	return a
}

func TestLUSolves(t *testing.T) {
	left, full := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 1 + r.IntN(40)
		a := randomColumns(r, n)
		f := NewLU(a)
		var took []int
		for j := range a.Cols {
			if f.Cols() == n {
				break
			}
			if f.Add(a.Idx[a.Ptr[j]:a.Ptr[j+1]], a.Val[a.Ptr[j]:a.Ptr[j+1]]) {
				took = append(took, j)
			} else {
				left++
			}
		}
		if f.Cols() < n {
			continue
		}
		full++
		want, rhs, c := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range want {
			want[i] = r.NormFloat64()
		}
		for k, j := range took {
			for q := a.Ptr[j]; q < a.Ptr[j+1]; q++ {
				rhs[a.Idx[q]] += a.Val[q] * want[k]
			}
			c[k] = a.Dot(j, want)
		}
		x, y := make([]float64, n), make([]float64, n)
		f.Solve(x, rhs)
		f.SolveT(y, c)
		for i := range want {
			if math.Abs(x[i]-want[i])+math.Abs(y[i]-want[i]) > 1e-6*(1+math.Abs(want[i])) {
				t.Errorf("seed %d, %d rows: %v and %v, want %v", seed, n, x[i], y[i], want[i])
			}
		}
	}
	if left < 100 || full < 100 {
		t.Errorf("%d columns left out, %d bases: too few to mean anything", left, full)
	}
}

// Add rejects dependent columns, and Reset removes all.
func TestLUDependent(t *testing.T) {
	f := NewLU(&Matrix{Rows: 2})
	if !f.Add([]int{0, 1}, []float64{1, 2}) || f.Add([]int{0, 1}, []float64{2, 4}) || f.Add([]int{0}, []float64{0}) {
		t.Error("a multiple, or nothing, was taken")
	}
	f.Reset()
	if !f.Add([]int{0, 1}, []float64{2, 4}) || f.Cols() != 1 {
		t.Error("not taken after Reset")
	}
}
