package lp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/lp/sparse"
)

// vertex walks from the point that the interior-point method reached to an optimal vertex of a standard problem, by the
// primal simplex method with bounds on variables (Maros, Computational Techniques of the Simplex Method, Kluwer 2003).
// Points inside lose their digits where what is feasible is a sliver or the optimal duals have no bound; at a vertex
// values and duals solve equations, which does not depend on either. It begins at the basis of the columns that are
// farthest from their bounds and wants few pivots if that point was near the optimum.
//
// Columns past those of the problem are artificial: one for each row, fixed at zero, for rows that depend on others.
type vertex struct {
	*standard
	lu    *sparse.LU
	basis []int     // columns, by position
	at    []place   // by column
	low   []float64 // bounds, by column
	high  []float64
	x     []float64 // by column
	etas  []eta     // what became of the basis since it was factored
	y     []float64 // duals by row
	stale bool      // the basis is to be factored afresh
	bland bool      // the lowest index decides, so as not to go in circles
	// Work space, by row.
	rhs, col, cost []float64
}

// place says where a column is.
type place int8

const (
	basic place = iota
	atZero
	atUpper
)

// eta is one column of the basis replaced: in position at by one that is col in terms of the basis before.
type eta struct {
	at  int
	col []float64
}

const (
	vertexPrimal   = 1e-9  // how far outside its bounds a value counts as within, in the scaled problem
	vertexRelax    = 1e-7  // the same where there is no other way, to be judged by the residuals
	vertexDual     = 1e-10 // a reduced cost that is none
	vertexPivot    = 1e-8  // smallest pivot, of the largest of its column
	vertexRefactor = 40    // pivots after which the basis is factored afresh
	vertexStuck    = 60    // pivots without gain after which the lowest index decides
	vertexPivots   = 20000 // at most
)

// newVertex starts near the point x with the duals y.
func newVertex(s *standard, x, y []float64) *vertex {
	n, m := s.a.Cols, s.a.Rows
	v := &vertex{standard: s, lu: sparse.NewLU(s.a), at: make([]place, n+m), x: make([]float64, n+m), y: make([]float64, m),
		low: make([]float64, n+m), high: make([]float64, n+m), stale: true,
		rhs: make([]float64, m), col: make([]float64, m), cost: make([]float64, m)}
	for j := range v.at {
		v.at[j] = atZero
	}
	for j, u := range s.u {
		v.high[j] = u
		switch {
		case s.free[j]:
			v.low[j], v.high[j] = math.Inf(-1), math.Inf(1)
		case u-x[j] < x[j]:
			v.at[j], v.x[j] = atUpper, u
		}
	}
	for _, j := range s.inside(x, y) {
		if v.lu.Cols() == m {
			break
		}
		if v.lu.Add(v.column(j)) {
			v.basis = append(v.basis, j)
			v.at[j] = basic
		}
	}
	for i := range m {
		if j := n + i; !v.lu.Taken(i) && v.lu.Add(v.column(j)) {
			v.basis = append(v.basis, j)
			v.at[j] = basic
		}
	}
	return v
}

// inside lists the columns, those farthest from their bounds, next to their reduced costs, first.
func (s *standard) inside(x, y []float64) []int {
	key, order := make([]float64, s.a.Cols), make([]int, s.a.Cols)
	for j := range key {
		order[j] = j
		if s.free[j] {
			key[j] = math.Inf(1)
			continue
		}
		room := math.Max(0, math.Min(x[j], s.u[j]-x[j]))
		key[j] = math.Log(room+1e-300) - math.Log(math.Abs(s.c[j]-s.a.Dot(j, y))+1e-300)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key[b], key[a]) })
	return order
}

// column returns the entries of column j.
func (v *vertex) column(j int) (idx []int, val []float64) {
	if n := v.a.Cols; j >= n {
		return []int{j - n}, []float64{1}
	}
	p, q := v.a.Ptr[j], v.a.Ptr[j+1]
	return v.a.Idx[p:q], v.a.Val[p:q]
}

// run walks until no neighbour is better. After optimal x and y are an optimum; after infeasible y is a proof; after
// unbounded x is a ray, by column. The error is that of the context.
func (v *vertex) run(ctx context.Context) (status, error) {
	stuck, last := 0, math.Inf(1)
	for pivots := range vertexPivots {
		if pivots%64 == 63 && ctx.Err() != nil {
			return stalled, fmt.Errorf("lp: stopped after %d pivots: %w", pivots, ctx.Err())
		}
		if v.stale || len(v.etas) >= vertexRefactor {
			if !v.factor() {
				return stalled, nil
			}
			v.values()
		}
		outside, value := v.price()
		if outside > 0 {
			value = 1e30 * outside // the way in comes first
		}
		if value < last-1e-12*math.Abs(last) {
			stuck, last = 0, value
			v.bland = false
		} else if stuck++; stuck > vertexStuck {
			v.bland = true
		}
		enter, up := v.entering(outside > 0)
		switch {
		case enter < 0 && len(v.etas) > 0: // ask again with fresh factors
			v.stale = true
			continue
		case enter < 0 && outside > 0 && !v.relax():
			return infeasible, nil
		case enter < 0 && outside > 0:
			continue
		case enter < 0:
			return optimal, nil
		}
		if !v.pivot(enter, up) {
			if outside > 0 {
				return stalled, nil
			}
			v.ray(enter, up)
			return unbounded, nil
		}
	}
	return stalled, nil
}

// relax moves bounds to where what is outside them is, if that is as near as an answer may be, and reports whether it is.
func (v *vertex) relax() bool {
	far := 0.0
	for _, j := range v.basis {
		far = math.Max(far, math.Max(v.low[j]-v.x[j], v.x[j]-v.high[j]))
	}
	if far > vertexRelax {
		return false
	}
	for _, j := range v.basis {
		v.low[j], v.high[j] = math.Min(v.low[j], v.x[j]), math.Max(v.high[j], v.x[j])
	}
	return true
}

// factor factors the basis and reports whether it is one.
func (v *vertex) factor() bool {
	v.lu.Reset()
	v.etas, v.stale = v.etas[:0], false
	slices.SortFunc(v.basis, func(a, b int) int {
		x, _ := v.column(a)
		y, _ := v.column(b)
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
	})
	for _, j := range v.basis {
		if !v.lu.Add(v.column(j)) {
			return false
		}
	}
	return true
}

// values computes those of the basis, once more for what rounding has left.
func (v *vertex) values() {
	for _, j := range v.basis {
		v.x[j] = 0
	}
	for range 2 {
		copy(v.rhs, v.b)
		v.a.AddMul(v.rhs, -1, v.x[:v.a.Cols])
		for i := range v.rhs {
			v.rhs[i] -= v.x[v.a.Cols+i]
		}
		v.lu.Solve(v.col, v.rhs)
		for p, j := range v.basis {
			v.x[j] += v.col[p]
		}
	}
}

// price computes the duals of the sum of what is outside its bounds, or, if nothing is, of the costs, and returns the
// sum and the value.
func (v *vertex) price() (outside, value float64) {
	for p, j := range v.basis {
		lower, upper := v.low[j], v.high[j]
		v.cost[p] = 0
		switch x := v.x[j]; {
		case x < lower-vertexPrimal:
			v.cost[p] = -1
			outside += lower - x
		case x > upper+vertexPrimal:
			v.cost[p] = 1
			outside += x - upper
		}
	}
	if outside == 0 {
		for p, j := range v.basis {
			v.cost[p] = 0
			if j < v.a.Cols {
				v.cost[p] = v.c[j]
			}
		}
		for j, c := range v.c {
			value += c * v.x[j]
		}
	}
	for k := len(v.etas) - 1; k >= 0; k-- {
		e := v.etas[k]
		sum := v.cost[e.at]
		for p, a := range e.col {
			if p != e.at {
				sum -= a * v.cost[p]
			}
		}
		v.cost[e.at] = sum / e.col[e.at]
	}
	v.lu.SolveT(v.y, v.cost)
	return outside, value
}

// entering returns the column, not in the basis, by which a step gains most, -1 if none does, and whether it grows.
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

// pivot moves column enter as far as it can go and brings it into the basis for what stops it, unless that is its other
// bound. It reports false if nothing does.
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

// direction computes column enter in terms of the basis, and returns what the basis moves by for each of it.
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

// leaving returns the position in the basis of what reaches a bound first, -1 if nothing does, after which step and at
// which bound. What is outside its bounds may go as far as the nearer one. Of those that are within rounding of the
// first, the one with the largest pivot leaves (Harris, Pivot selection methods of the Devex LP code, 1973), or the
// lowest index.
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

// room returns how far what is at position p can move, and the bound that stops it.
func (v *vertex) room(p int, sign float64) (room float64, bound place) {
	j := v.basis[p]
	lower, upper := v.low[j], v.high[j]
	x := v.x[j]
	if sign*v.col[p] > 0 { // it grows
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

// move moves column enter by step against the basis.
func (v *vertex) move(enter int, sign, step float64) {
	v.x[enter] -= sign * step
	for p, j := range v.basis {
		v.x[j] += sign * step * v.col[p]
	}
}

// ray makes x the direction in which nothing stops column enter.
func (v *vertex) ray(enter int, up bool) {
	sign := v.direction(enter, up)
	clear(v.x)
	v.move(enter, sign, 1)
}

// walk replaces what the interior-point method ended with by a vertex, or by a proof that there is none, if that is
// better.
func (f *form) walk(ctx context.Context, in *interior, out *outcome) error {
	x, y := out.sx, out.sy
	if x == nil {
		x, y = in.scaled()
	}
	v := newVertex(in.standard, x, y)
	st, err := v.run(ctx)
	if err != nil {
		return err
	}
	switch n := in.a.Cols; st {
	case optimal:
		fx, fy := in.solution(v.x[:n], v.y)
		f.clamp(fx)
		if r := f.residuals(fx, fy); r.Max() < out.residuals.Max() {
			out.x, out.y, out.residuals, out.vertex = fx, fy, r, true
		}
	case infeasible:
		if y, ok := f.farkas(in.rowDuals(v.y)); ok {
			out.status, out.y = infeasible, y
		}
	case unbounded:
		if r, ok := f.recession(in.ray(v.x[:n])); ok {
			out.status, out.x = unbounded, r
		}
	}
	return nil
}
