package lp

import (
	"math"
	"slices"
)

// scalePasses is the number of row and column scalings; each about halves the remaining exponent (Ruiz, A scaling
// algorithm to equilibrate both rows and columns norms in matrices, RAL-TR-2001-034).
const scalePasses = 8

// scale brings the largest entry of every row and column, right side and costs near 1, and records the factors.
func (s *standard) scale() {
	a := s.a
	rowMax, colMax := make([]float64, a.Rows), make([]float64, a.Cols)
	for range scalePasses {
		clear(rowMax)
		clear(colMax)
		for j := range a.Cols {
			for k := a.Ptr[j]; k < a.Ptr[j+1]; k++ {
				i := a.Idx[k]
				v := math.Abs(a.Val[k]) * s.rowScale[i] * s.colScale[j]
				if v > rowMax[i] {
					rowMax[i] = v
				}
				if v > colMax[j] {
					colMax[j] = v
				}
			}
		}
		divideRoots(s.rowScale, rowMax)
		divideRoots(s.colScale, colMax)
	}
	s.applyScale()
}

// applyScale rounds the scales to powers of two and applies them.
func (s *standard) applyScale() {
	a := s.a
	roundToPowers(s.rowScale)
	roundToPowers(s.colScale)
	for j := range a.Cols {
		s.c[j] *= s.colScale[j]
		s.u[j] /= s.colScale[j]
		for k := a.Ptr[j]; k < a.Ptr[j+1]; k++ {
			a.Val[k] *= s.rowScale[a.Idx[k]] * s.colScale[j]
		}
	}
	for i := range s.b {
		s.b[i] *= s.rowScale[i]
	}
	s.xScale, s.cScale = powerOfTwo(maxAbs(s.b)), powerOfTwo(maxAbs(s.c))
	divide(s.b, s.xScale)
	divide(s.c, s.cScale)
	divide(s.u, s.xScale)
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// divideRoots divides each scale by the root of its positive remainder.
func divideRoots(scale, most []float64) {
	for i, v := range most {
		if v > 0 {
			scale[i] /= math.Sqrt(v)
		}
	}
}

func roundToPowers(v []float64) {
	for i := range v {
		v[i] = powerOfTwo(v[i])
	}
}

// powerOfTwo returns the power of two nearest to v in ratio, 1 for zero.
func powerOfTwo(v float64) float64 {
	if v == 0 {
		return 1
	}
	return math.Exp2(math.Round(math.Log2(v)))
}
