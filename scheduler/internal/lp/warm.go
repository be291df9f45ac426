package lp

import (
	"math"
	"slices"
)

// warmWeight is the share of a known solution in the first iterate; the cold start has the rest (Skajaa, Andersen and
// Ye, Warmstarting the homogeneous and self-dual interior point method for linear and conic quadratic problems,
// Mathematical Programming Computation 5, 2013). A larger share starts too near to the boundary to leave it.
const warmWeight = 0.999

// start is an initial point: values by column and duals by row of a form.
type start struct {
	x, y []float64
}

// within returns the start restricted to the presolved rows and columns; nil stays nil.
func (s *start) within(rows, cols []int) *start {
	if s == nil {
		return nil
	}
	part := &start{}
	for _, j := range cols {
		part.x = append(part.x, s.x[j])
	}
	for _, i := range rows {
		part.y = append(part.y, s.y[i])
	}
	return part
}

// warm moves the first iterate towards the start.
func (in *interior) warm(s *start) {
	if s == nil {
		return
	}
	t := &in.now
	x := in.place(s.x)
	for k, i := range in.row {
		t.y[k] = warmWeight * s.y[i] / (in.rowScale[k] * in.cScale)
	}
	d := slices.Clone(in.c)
	in.a.AddMulT(d, -1/warmWeight, t.y)
	for j := range t.x {
		if in.free[j] {
			t.x[j] = warmWeight * x[j]
			continue
		}
		t.x[j] = warmWeight*math.Max(0, x[j]) + 1 - warmWeight
		t.z[j] = warmWeight*math.Max(0, d[j]) + 1 - warmWeight
	}
	for k, j := range in.boxed {
		t.w[k] = warmWeight*math.Max(0, in.u[j]-x[j]) + 1 - warmWeight
		t.v[k] = warmWeight*math.Max(0, -d[j]) + 1 - warmWeight
	}
	t.kappa = in.centre()
}

// centre returns the mean of the complementary products without τκ.
func (in *interior) centre() float64 {
	sum, n := 0.0, 0
	for j, x := range in.now.x {
		if !in.free[j] {
			sum += x * in.now.z[j]
			n++
		}
	}
	for k, w := range in.now.w {
		sum += w * in.now.v[k]
		n++
	}
	return sum / math.Max(1, float64(n))
}

// place converts values of the form's columns to the standard problem, with slacks that satisfy its rows.
func (s *standard) place(fx []float64) []float64 {
	x := make([]float64, s.a.Cols)
	left := slices.Clone(s.b)
	for k, j := range s.col {
		if j >= 0 {
			x[k] = s.turn[k] * (fx[j] - s.shift[j]) / (s.colScale[k] * s.xScale)
			for q := s.a.Ptr[k]; q < s.a.Ptr[k+1]; q++ {
				left[s.a.Idx[q]] -= s.a.Val[q] * x[k]
			}
		}
	}
	for k, j := range s.col {
		if j < 0 {
			q := s.a.Ptr[k]
			x[k] = left[s.a.Idx[q]] / s.a.Val[q]
		}
	}
	return x
}
