package sparse

// Matrix is a sparse matrix by columns. Column j has the entries Val[Ptr[j]:Ptr[j+1]], in the rows at the same
// positions of Idx.
type Matrix struct {
	Rows, Cols int
	Ptr        []int // Cols+1
	Idx        []int
	Val        []float64
}

// Column returns the rows and values of column j.
func (a *Matrix) Column(j int) (rows []int, vals []float64) {
	from, to := a.Ptr[j], a.Ptr[j+1]
	return a.Idx[from:to:to], a.Val[from:to:to]
}

// AddMul adds s A x to y.
func (a *Matrix) AddMul(y []float64, s float64, x []float64) {
	for j := range a.Cols {
		xj := s * x[j]
		if xj == 0 {
			continue
		}
		for k := a.Ptr[j]; k < a.Ptr[j+1]; k++ {
			y[a.Idx[k]] += a.Val[k] * xj
		}
	}
}

// AddMulT adds s A'y to x.
func (a *Matrix) AddMulT(x []float64, s float64, y []float64) {
	for j := range a.Cols {
		x[j] += s * a.Dot(j, y)
	}
}

// Dot returns the product of column j and y.
func (a *Matrix) Dot(j int, y []float64) float64 {
	sum := 0.0
	rows, vals := a.Column(j)
	for k, i := range rows {
		sum += vals[k] * y[i]
	}
	return sum
}

// Transpose returns A'. Rows of each of its columns ascend.
func (a *Matrix) Transpose() *Matrix {
	t := &Matrix{Rows: a.Cols, Cols: a.Rows, Ptr: make([]int, a.Rows+1), Idx: make([]int, len(a.Idx)), Val: make([]float64, len(a.Val))}
	for _, i := range a.Idx {
		t.Ptr[i+1]++
	}
	for i := range a.Rows {
		t.Ptr[i+1] += t.Ptr[i]
	}
	next := append([]int(nil), t.Ptr[:a.Rows]...)
	for j := range a.Cols {
		for k := a.Ptr[j]; k < a.Ptr[j+1]; k++ {
			at := next[a.Idx[k]]
			t.Idx[at], t.Val[at] = j, a.Val[k]
			next[a.Idx[k]]++
		}
	}
	return t
}
