package lp

import (
	"math"
	"slices"
)

// warmth is the part of a known solution in the first iterate; the rest is where a cold start begins (Skajaa, Andersen
// and Ye, Warmstarting the homogeneous and self-dual interior point method for linear and conic quadratic problems,
// Mathematical Programming Computation 5, 2013). More would start so near to the boundary that an iterate could hardly
// leave it where the solution has moved.
const warmth = 0.999

// start is a point to begin near: values by column and duals by row of a form.
type start struct {
	x, y []float64
}

// within returns the part of the start that presolving leaves; nil stays nil.
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
		t.y[k] = warmth * s.y[i] / (in.rowScale[k] * in.cScale)
	}
	d := slices.Clone(in.c)
	in.a.AddMulT(d, -1/warmth, t.y)
	for j := range t.x {
		if in.free[j] {
			t.x[j] = warmth * x[j]
			continue
		}
		t.x[j] = warmth*math.Max(0, x[j]) + 1 - warmth
		t.z[j] = warmth*math.Max(0, d[j]) + 1 - warmth
	}
	for k, j := range in.boxed {
		t.w[k] = warmth*math.Max(0, in.u[j]-x[j]) + 1 - warmth
		t.v[k] = warmth*math.Max(0, -d[j]) + 1 - warmth
	}
	t.kappa = in.centre()
}

// centre returns the mean of the complementary products but that of τκ.
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

// place returns values of form's columns as those of the standard problem, with slacks that make its rows hold.
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
