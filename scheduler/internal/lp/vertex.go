package lp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/lp/sparse"
)

// vertex moves from the end point of the interior-point method to an optimal vertex of a standard problem. It uses the
// primal simplex method with bounds on variables (Maros, Computational Techniques of the Simplex Method, Kluwer 2003).
// Interior points lose digits if the feasible set is very thin or the optimal duals are unbounded. At a vertex values
// and duals solve linear equations, so neither matters. The first basis has the columns farthest from their bounds; a
// start near the optimum needs few pivots.
//
// Columns after those of the problem are artificial: one per row, fixed at zero, for linearly dependent rows.
type vertex struct {
	*standard
	lu    *sparse.LU
	basis []int     // columns, by position
	at    []place   // by column
	low   []float64 // bounds, by column
	high  []float64
	x     []float64 // by column
	etas  []eta     // updates of the basis since its factorization
	y     []float64 // duals by row
	stale bool      // the basis needs a new factorization
	bland bool      // Bland's rule: the lowest index enters and leaves, which prevents cycles
	// Work space, by row.
	rhs, col, cost []float64
}

// place is the status of a column: basic, or at one of its bounds.
type place int8

const (
	basic place = iota
	atZero
	atUpper
)

// eta replaces the basis column at position at; col is the new column in terms of the basis before.
type eta struct {
	at  int
	col []float64
}

const (
	vertexPrimal   = 1e-9  // feasibility tolerance in the scaled problem
	vertexRelax    = 1e-7  // the same when no column can enter; the residuals decide in the end
	vertexDual     = 1e-10 // optimality tolerance of a reduced cost
	vertexPivot    = 1e-8  // least pivot, relative to the largest entry of its column
	vertexRefactor = 40    // pivots between factorizations
	vertexStuck    = 60    // pivots without gain before Bland's rule applies
	vertexPivots   = 20000 // limit of pivots
)

// newVertex starts near the point x with the duals y.
func newVertex(s *standard, x, y []float64) *vertex {
	n, m := s.a.Cols, s.a.Rows
	v := &vertex{standard: s, lu: sparse.NewLU(s.a), at: slices.Repeat([]place{atZero}, n+m), x: make([]float64, n+m), y: make([]float64, m),
		low: make([]float64, n+m), high: make([]float64, n+m), stale: true,
		rhs: make([]float64, m), col: make([]float64, m), cost: make([]float64, m)}
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
		v.addBasic(j)
	}
	for i := range m {
		if !v.lu.Taken(i) {
			v.addBasic(n + i)
		}
	}
	return v
}

// addBasic adds column j to the basis, unless it depends on the columns there.
func (v *vertex) addBasic(j int) {
	if v.lu.Add(v.column(j)) {
		v.basis = append(v.basis, j)
		v.at[j] = basic
	}
}

// inside orders the columns by distance from their bounds relative to their reduced cost, largest first.
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

// run pivots to optimality. After optimal x and y are an optimum; after infeasible y is a certificate; after unbounded
// x is a ray, by column. The error is that of ctx.
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
			value = 1e30 * outside // feasibility comes first
		}
		if value < last-1e-12*math.Abs(last) {
			stuck, last = 0, value
			v.bland = false
		} else if stuck++; stuck > vertexStuck {
			v.bland = true
		}
		enter, up := v.entering(outside > 0)
		switch {
		case enter < 0 && len(v.etas) > 0: // price again with fresh factors
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

// relax widens bounds to the values outside them if all are within vertexRelax, and reports whether it did.
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

// factor factors the basis and reports whether it is regular.
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

// values computes the basic values, with one step of iterative refinement.
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

// price computes the duals: of the sum of infeasibilities, or, at a feasible point, of the costs. It returns that sum
// and the objective.
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
		value = dot(v.c, v.x)
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

// crossover replaces the result of the interior-point method by an optimal vertex, if its residuals are smaller, or by
// a certificate that there is no optimum.
func (f *form) crossover(ctx context.Context, in *interior, out *outcome) error {
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
