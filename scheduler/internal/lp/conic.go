package lp

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/scheduler/internal/lp/sparse"
)

// SolveConic returns the optimum that cone programme solvers find. Every bound becomes a row with a slack, without
// presolve or scaling, and the path starts at the least-squares points (L. Vandenberghe, The CVXOPT linear and
// quadratic cone program solvers, 2010, sections 7.1 and 7.3; ECOS starts likewise). With several optima it returns
// the one where CVXOPT ends, between their centre and the start. That point depends on how the problem is stated, so
// the method is for reproducing results of such a solver only. Residuals are at most 1e-6. If the path fails, it
// returns what Solve returns, with its errors.
func (p *Problem) SolveConic(ctx context.Context) (*Solution, error) {
	o := Options{Tolerance: conicTolerance}
	f, err := p.prepare(o)
	if err != nil {
		return nil, err
	}
	conic := f.conic().unscaled()
	k, release := kept.take(conic.a, conic.free)
	defer release()
	in := newInteriorWith(conic, k)
	in.textbook = true
	in.leastSquares()
	st, iterations, err := in.run(ctx, conicIterations, func(in *interior) status {
		if primal, dual, gap := in.errors(); math.Max(primal, math.Max(dual, gap)) <= conicGoal {
			return optimal
		}
		return stalled
	})
	if err != nil {
		return nil, err
	}
	if st == optimal {
		x, y := in.solution(in.scaled())
		out := outcome{status: optimal, x: x, y: y[:len(p.rows)], iterations: iterations}
		f.clamp(out.x)
		if out.residuals = f.residuals(out.x, out.y); out.residuals.Max() <= o.tolerance() {
			return p.answer(f, out, o)
		}
	}
	return p.Solve(ctx, o)
}

const (
	conicGoal       = 1e-7 // residuals at which CVXOPT ends
	conicTolerance  = 1e-6 // residuals of the problem as stated, which has another scale
	conicIterations = 100
)

// conic returns f with free variables and a row for each of their bounds. Rows with two different bounds stay as they
// are.
func (f *form) conic() *form {
	n := f.a.Cols
	g := &form{c: f.c, l: make([]float64, n), u: make([]float64, n)}
	g.lr, g.ur = append(g.lr, f.lr...), append(g.ur, f.ur...)
	g.a = &sparse.Matrix{Cols: n, Ptr: []int{0}}
	bound := func(lower, upper float64) {
		if math.IsInf(lower, -1) && math.IsInf(upper, 1) {
			return
		}
		g.a.Idx, g.a.Val = append(g.a.Idx, len(g.lr)), append(g.a.Val, 1)
		g.lr, g.ur = append(g.lr, lower), append(g.ur, upper)
	}
	for j := range n {
		g.a.Idx = append(g.a.Idx, f.a.Idx[f.a.Ptr[j]:f.a.Ptr[j+1]]...)
		g.a.Val = append(g.a.Val, f.a.Val[f.a.Ptr[j]:f.a.Ptr[j+1]]...)
		if f.l[j] == f.u[j] {
			bound(f.l[j], f.u[j])
		} else {
			bound(f.l[j], Inf)
			bound(-Inf, f.u[j])
		}
		g.a.Ptr = append(g.a.Ptr, len(g.a.Idx))
		g.l[j], g.u[j] = -Inf, Inf
	}
	g.a.Rows = len(g.lr)
	return g
}

// leastSquares sets the first iterate of a conic form to the x with the least sum of squared slacks, and the y with
// the least sum of squared z. Slacks and z are then shifted so that their least entry is 1, unless all are positive.
func (in *interior) leastSquares() {
	t := &in.now
	for j, free := range in.free {
		in.d[j] = 1
		if free {
			in.d[j] = 0
		}
	}
	in.k.set(in.d, refineTo)
	zero := make([]float64, max(len(in.b), len(in.c)))
	y := make([]float64, len(in.b))
	in.k.solve(t.x, y, zero[:len(in.c)], in.b)
	dx := make([]float64, len(in.c))
	in.k.solve(dx, t.y, in.c, zero[:len(in.b)])
	copy(t.z, in.c)
	in.a.AddMulT(t.z, -1, t.y)
	in.raise(t.x)
	in.raise(t.z)
}

// raise shifts the entries of v that are not free so that the least is 1, unless all are clearly above 0.
func (in *interior) raise(v []float64) {
	least, squares := math.Inf(1), 0.0
	for j, free := range in.free {
		if !free {
			least, squares = math.Min(least, v[j]), squares+v[j]*v[j]
		}
	}
	if least > 1e-8*math.Max(1, math.Sqrt(squares)) {
		return
	}
	for j, free := range in.free {
		if !free {
			v[j] += 1 - least
		}
	}
}
