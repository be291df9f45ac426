package lp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Options configure Solve. The zero value suits most problems.
type Options struct {
	// Tolerance is the limit of every residual; zero is 1e-8.
	Tolerance float64
	// MaxIterations bounds the interior-point iterations; zero is 200.
	MaxIterations int
}

// Validate reports what is wrong with the options, by name.
func (o Options) Validate() error {
	switch {
	case math.IsNaN(o.Tolerance) || o.Tolerance < 0 || o.Tolerance > 1e-2:
		return fmt.Errorf("lp: tolerance %g is outside [0, 0.01]; zero is 1e-8", o.Tolerance)
	case o.MaxIterations < 0:
		return fmt.Errorf("lp: %d iterations at most; give a positive number, or zero for 200", o.MaxIterations)
	}
	return nil
}

func (o Options) tolerance() float64 { return cmp.Or(o.Tolerance, 1e-8) }
func (o Options) maxIterations() int { return cmp.Or(o.MaxIterations, 200) }

// Solution is an optimum, proven by its residuals.
type Solution struct {
	// Objective is the value at X.
	Objective float64
	// X has the values, by variable.
	X []float64
	// Duals has, by row, the growth of the objective per unit of the binding bound.
	Duals []float64
	// Reduced has the same for the bounds of each variable.
	Reduced []float64
	// Residuals are measured on the problem as stated.
	Residuals Residuals
	// Iterations counts interior-point iterations.
	Iterations int
	// Vertex reports that X and Duals are a vertex of their optimal sets rather than the centre: the interior-point
	// method missed the tolerance, and the simplex method continued from its end point.
	Vertex bool
}

// Value returns the value of v.
func (s *Solution) Value(v Var) float64 { return s.X[v] }

// Dual returns the growth of the objective per unit of the binding bound of r.
func (s *Solution) Dual(r Row) float64 { return s.Duals[r] }

// Solve returns an optimum. With several optima it returns their analytic centre, to four or five digits. The centre
// does not depend on the order or names of variables and rows. Solution.Vertex marks the exception.
//
// It fails with [ErrInvalid], [ErrInfeasible], [ErrUnbounded], [ErrNumerical], the error of Options.Validate, or the
// error of ctx.
func (p *Problem) Solve(ctx context.Context, o Options) (*Solution, error) {
	f, err := p.prepare(o)
	if err != nil {
		return nil, err
	}
	out, err := f.decide(ctx, o)
	if err != nil {
		return nil, err
	}
	return p.answer(f, out, o)
}

// prepare checks the options and the problem, and compiles it.
func (p *Problem) prepare(o Options) (*form, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	f := p.compile()
	return f, f.crossed(p)
}

// outcome is the result of a solver on a form.
type outcome struct {
	status     status
	x, y       []float64 // optimum; or a ray in x, or multipliers in y
	sx, sy     []float64 // the same as a point of the standard problem
	residuals  Residuals
	vertex     bool // x and y are those of a vertex
	iterations int
}

// decide solves f. An improving direction makes f unbounded only if f is feasible, so decide then checks feasibility.
func (f *form) decide(ctx context.Context, o Options) (outcome, error) {
	out, err := f.solve(ctx, o)
	if err != nil || out.status != unbounded {
		return out, err
	}
	anyPoint := *f
	anyPoint.c = make([]float64, len(f.c))
	point, err := anyPoint.solve(ctx, o)
	if err != nil || point.status != optimal {
		return point, err
	}
	return out, nil
}

// solve presolves and solves f; its bounds must not cross. Without an optimum of sufficient accuracy it solves all of
// f, so that certificates refer to all of f.
func (f *form) solve(ctx context.Context, o Options) (outcome, error) {
	p := newPresolve(f)
	if len(p.steps) == 0 && !slices.Contains(p.colOn, false) {
		return f.path(ctx, o)
	}
	small, rows, cols := p.reduced()
	out, err := small.path(ctx, o)
	if err != nil {
		return out, err
	}
	if out.status == optimal {
		out.x, out.y = p.restore(out.x, out.y, rows, cols)
		f.clamp(out.x)
		if out.residuals = f.residuals(out.x, out.y); out.residuals.Max() <= o.tolerance() {
			return out, nil
		}
	}
	whole, err := f.path(ctx, o)
	whole.iterations += out.iterations
	return whole, err
}

// path runs the interior-point method on f; bounds must not cross. If it stalls, crossover continues from its end
// point.
func (f *form) path(ctx context.Context, o Options) (outcome, error) {
	in := newInterior(newStandard(f))
	out := outcome{residuals: Residuals{math.Inf(1), math.Inf(1), math.Inf(1)}}
	st, iterations, err := in.run(ctx, o.maxIterations(), func(in *interior) status {
		return f.judge(in, &out, o)
	})
	out.status, out.iterations = st, iterations
	if err != nil || st != stalled {
		return out, err
	}
	if iterations < o.maxIterations() && out.residuals.Max() > crossoverResidual*o.tolerance() {
		err = f.crossover(ctx, in, &out)
	}
	if out.residuals.Max() <= o.tolerance() {
		out.status = optimal
	}
	return out, err
}

// enough is the residual, relative to the tolerance, that ends the iteration early.
const enough = 1e-2

// crossoverResidual is the residual, relative to the tolerance, above which a stalled path needs crossover. It is
// below 1 because programmes built on the optima of others accumulate their errors.
const crossoverResidual = 0.1

// measurable is the residual of the scaled problem below which an iterate is measured on the problem as stated.
const measurable = 1e-5

// judge keeps the best iterate in out, and returns whether it is good enough or proves that there is no optimum.
func (f *form) judge(in *interior, out *outcome, o Options) status {
	t := &in.now
	primal, dual, gap := in.errors()
	if math.Max(primal, math.Max(dual, gap)) <= math.Max(measurable, 100*o.tolerance()) {
		sx, sy := in.scaled()
		x, y := in.solution(sx, sy)
		f.clamp(x)
		if r := f.residuals(x, y); r.Max() < out.residuals.Max() {
			out.x, out.y, out.residuals = x, y, r
			out.sx, out.sy = sx, sy
		}
		if out.residuals.Max() <= enough*o.tolerance() {
			return optimal
		}
	}
	if t.tau > 1e-2*t.kappa {
		return stalled
	}
	if y, ok := f.farkas(in.rowDuals(t.y)); ok {
		out.y = y
		return infeasible
	}
	if r, ok := f.recession(in.ray(t.x)); ok {
		out.x = r
		return unbounded
	}
	return stalled
}

// clamp moves x into its bounds.
func (f *form) clamp(x []float64) {
	for j := range x {
		x[j] = math.Max(f.l[j], math.Min(f.u[j], x[j]))
	}
}

// proofTolerance is the accuracy required of certificates.
const proofTolerance = 1e-8

// farkas scales y to a certificate of infeasibility and reports whether it is one.
func (f *form) farkas(y []float64) ([]float64, bool) {
	d := make([]float64, len(f.c))
	f.a.AddMulT(d, -1, y)
	bound, size, worst := 0.0, 0.0, 0.0
	add := func(v, lower, upper float64) {
		b, w := multiplierTimesBound(v, lower, upper)
		bound += b
		size += math.Abs(b)
		worst = math.Max(worst, w)
	}
	for i, v := range y {
		add(v, f.lr[i], f.ur[i])
	}
	for j, v := range d {
		add(v, f.l[j], f.u[j])
	}
	if !(bound > proofTolerance*size) || worst > proofTolerance*bound || math.IsInf(bound, 0) {
		return nil, false
	}
	divide(y, bound)
	return y, true
}

// recession clamps r, with largest entry 1, to a direction that the variables' bounds allow. It reports whether the
// rows allow it too and the objective falls along it.
func (f *form) recession(r []float64) ([]float64, bool) {
	slope := 0.0
	for j := range r {
		if !math.IsInf(f.l[j], -1) {
			r[j] = math.Max(0, r[j])
		}
		if !math.IsInf(f.u[j], 1) {
			r[j] = math.Min(0, r[j])
		}
		slope += f.c[j] * r[j]
	}
	if !(slope < 0) {
		return nil, false
	}
	slack := proofTolerance * -slope / f.costScale()
	activity, size := make([]float64, f.a.Rows), make([]float64, f.a.Rows)
	f.a.AddMul(activity, 1, r)
	for k, i := range f.a.Idx {
		size[i] = math.Max(size[i], math.Abs(f.a.Val[k]))
	}
	for i, v := range activity {
		low, high := f.lr[i], f.ur[i]
		if !math.IsInf(low, -1) && v < -slack*size[i] || !math.IsInf(high, 1) && v > slack*size[i] {
			return nil, false
		}
	}
	return r, true
}

// crossed returns an error if a lower bound exceeds its upper bound.
func (f *form) crossed(p *Problem) error {
	for i := range f.lr {
		if f.lr[i] > f.ur[i] {
			return &InfeasibleError{Crossed: "row " + p.RowName(Row(i))}
		}
	}
	for j := range f.l {
		if f.l[j] > f.u[j] {
			return &InfeasibleError{Crossed: "variable " + p.VarName(Var(j))}
		}
	}
	return nil
}

// answer converts an outcome to a solution of p, or to its error.
func (p *Problem) answer(f *form, out outcome, o Options) (*Solution, error) {
	switch out.status {
	case optimal:
		return p.solution(f, out), nil
	case infeasible:
		return nil, &InfeasibleError{Multipliers: out.y, Rows: heaviest(out.y, func(i int) string { return p.RowName(Row(i)) })}
	case unbounded:
		return nil, &UnboundedError{Ray: out.x, Vars: heaviest(out.x, func(j int) string { return p.VarName(Var(j)) })}
	}
	return nil, &NumericalError{Residuals: out.residuals, Tolerance: o.tolerance(), Iterations: out.iterations}
}

func (p *Problem) solution(f *form, out outcome) *Solution {
	s := &Solution{X: out.x, Duals: out.y, Reduced: f.reduced(out.y), Residuals: out.residuals, Iterations: out.iterations, Vertex: out.vertex}
	for j, v := range p.vars {
		s.Objective += v.cost * s.X[j]
	}
	divide(s.Duals, p.sign())
	divide(s.Reduced, p.sign())
	return s
}

// heaviest names the entries of v with the largest absolute values, at most 5.
func heaviest(v []float64, name func(int) string) []string {
	var idx []int
	for i, x := range v {
		if math.Abs(x) > 1e-6 {
			idx = append(idx, i)
		}
	}
	slices.SortStableFunc(idx, func(a, b int) int { return cmp.Compare(math.Abs(v[b]), math.Abs(v[a])) })
	names := make([]string, 0, 5)
	for _, i := range idx[:min(5, len(idx))] {
		names = append(names, name(i))
	}
	return names
}
