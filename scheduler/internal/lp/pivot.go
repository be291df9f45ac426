package lp

import (
	"math"
	"slices"
)

// entering returns the nonbasic column with the largest reduced cost, -1 if none improves, and whether it increases.
func (v *vertex) entering(phase1 bool) (enter int, up bool) {
	enter = -1
	most := 0.0
	for j := range v.a.Cols {
		if v.at[j] == basic || v.low[j] == v.high[j] {
			continue
		}
		d := -v.a.Dot(j, v.y)
		if !phase1 {
			d += v.c[j]
		}
		gain := math.Abs(d)
		if !v.free[j] && (v.at[j] == atZero) != (d < 0) || gain <= math.Max(vertexDual, most) {
			continue
		}
		most, enter, up = gain, j, d < 0
		if v.bland {
			break
		}
	}
	return enter, up
}

// pivot moves column enter until it or a basic column reaches a bound. In the latter case enter replaces that column
// in the basis. It returns false if no bound stops the move.
func (v *vertex) pivot(enter int, up bool) bool {
	sign := v.direction(enter, up)
	leave, step, to := v.leaving(sign)
	lower, upper := v.low[enter], v.high[enter]
	switch width := upper - lower; {
	case math.IsInf(width, 1) && leave < 0:
		return false
	case width <= step:
		v.move(enter, sign, width)
		v.at[enter], v.x[enter] = atUpper, upper
		if !up {
			v.at[enter], v.x[enter] = atZero, lower
		}
		return true
	}
	v.move(enter, sign, step)
	out := v.basis[leave]
	v.at[out], v.x[out] = to, v.low[out]
	if to == atUpper {
		v.x[out] = v.high[out]
	}
	v.basis[leave], v.at[enter] = enter, basic
	v.etas = append(v.etas, eta{leave, slices.Clone(v.col)})
	return true
}

// direction computes column enter in terms of the basis, and returns the sign of the basis' movement.
func (v *vertex) direction(enter int, up bool) (sign float64) {
	clear(v.rhs)
	idx, val := v.column(enter)
	for q, i := range idx {
		v.rhs[i] = val[q]
	}
	v.lu.Solve(v.col, v.rhs)
	for _, e := range v.etas {
		v.col[e.at] /= e.col[e.at]
		if by := v.col[e.at]; by != 0 {
			for p, a := range e.col {
				if p != e.at {
					v.col[p] -= a * by
				}
			}
		}
	}
	if up {
		return -1
	}
	return 1
}

// leaving returns the basis position that first reaches a bound, -1 for none, with the step and the bound. A value
// outside its bounds may move to the nearer one. Of positions within rounding of the first, the one with the largest
// pivot leaves (Harris, Pivot selection methods of the Devex LP code, 1973). Under Bland's rule it is the lowest
// index.
func (v *vertex) leaving(sign float64) (leave int, step float64, to place) {
	least := vertexPivot * maxAbs(v.col)
	slack := vertexPrimal
	if v.bland {
		slack = 0
	}
	limit := math.Inf(1)
	for p := range v.basis {
		if rate := math.Abs(v.col[p]); rate > least {
			room, _ := v.room(p, sign)
			limit = math.Min(limit, (math.Max(0, room)+slack)/rate)
		}
	}
	leave, step = -1, math.Inf(1)
	size := 0.0
	for p, j := range v.basis {
		rate := math.Abs(v.col[p])
		if rate <= least {
			continue
		}
		room, bound := v.room(p, sign)
		if room = math.Max(0, room); room/rate > limit || math.IsInf(room, 1) {
			continue
		}
		better := rate > size
		if v.bland {
			better = leave < 0 || j < v.basis[leave]
		}
		if better {
			leave, step, to, size = p, room/rate, bound, rate
		}
	}
	return leave, step, to
}

// room returns how far the value at position p can move, and the bound that stops it.
func (v *vertex) room(p int, sign float64) (room float64, bound place) {
	j := v.basis[p]
	lower, upper := v.low[j], v.high[j]
	x := v.x[j]
	if sign*v.col[p] > 0 { // the value increases
		if x < lower-vertexPrimal {
			return lower - x, atZero
		}
		if x > upper+vertexPrimal {
			return math.Inf(1), atUpper
		}
		return upper - x, atUpper
	}
	if x > upper+vertexPrimal {
		return x - upper, atUpper
	}
	if x < lower-vertexPrimal {
		return math.Inf(1), atZero
	}
	return x - lower, atZero
}

// move moves column enter by step and updates the basic values.
func (v *vertex) move(enter int, sign, step float64) {
	v.x[enter] -= sign * step
	for p, j := range v.basis {
		v.x[j] += sign * step * v.col[p]
	}
}

// ray sets x to the unbounded direction of column enter.
func (v *vertex) ray(enter int, up bool) {
	sign := v.direction(enter, up)
	clear(v.x)
	v.move(enter, sign, 1)
}
