package lp

import (
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/lp/sparse"
)

// form is the solvers' input: minimise c'x with lr <= A x <= ur and l <= x <= u.
type form struct {
	a      *sparse.Matrix
	c      []float64
	l, u   []float64 // by column
	lr, ur []float64 // by row
}

// compile converts the problem to a form; a maximisation gets negated costs.
func (p *Problem) compile() *form {
	n, m := len(p.vars), len(p.rows)
	f := &form{
		c: make([]float64, n), l: make([]float64, n), u: make([]float64, n),
		lr: make([]float64, m), ur: make([]float64, m),
	}
	for j, v := range p.vars {
		f.c[j], f.l[j], f.u[j] = p.sign()*v.cost, v.lower, v.upper
	}
	for i, r := range p.rows {
		f.lr[i], f.ur[i] = r.lower, r.upper
	}
	f.a = p.columns()
	return f
}

// sign is the factor on costs and duals that makes the problem a minimisation.
func (p *Problem) sign() float64 {
	if p.sense == Maximize {
		return -1
	}
	return 1
}

// minimisedDuals returns duals of the problem as those of its minimisation; the same conversion leads back.
func (p *Problem) minimisedDuals(duals []float64) []float64 {
	y := slices.Clone(duals)
	divide(y, p.sign())
	return y
}

// columns returns the coefficients by column, rows ascending. It adds repeated coefficients and omits zeros.
func (p *Problem) columns() *sparse.Matrix {
	n := len(p.vars)
	a := &sparse.Matrix{Rows: len(p.rows), Cols: n, Ptr: make([]int, n+1), Idx: make([]int, len(p.terms)), Val: make([]float64, len(p.terms))}
	for _, t := range p.terms {
		a.Ptr[t.Var+1]++
	}
	for j := range n {
		a.Ptr[j+1] += a.Ptr[j]
	}
	next := slices.Clone(a.Ptr[:n])
	for i := range p.rows {
		for _, t := range p.rowTerms(i) {
			at := next[t.Var]
			if at > a.Ptr[t.Var] && a.Idx[at-1] == i {
				a.Val[at-1] += t.Coef
				continue
			}
			a.Idx[at], a.Val[at] = i, t.Coef
			next[t.Var]++
		}
	}
	packColumns(a, next)
	return a
}

// packColumns closes the gaps after the columns, where column j ends at end[j], and drops zeros.
func packColumns(a *sparse.Matrix, end []int) {
	to := 0
	for j := range a.Cols {
		from := a.Ptr[j]
		a.Ptr[j] = to
		for k := from; k < end[j]; k++ {
			if a.Val[k] != 0 {
				a.Idx[to], a.Val[to] = a.Idx[k], a.Val[k]
				to++
			}
		}
	}
	a.Ptr[a.Cols] = to
	a.Idx, a.Val = a.Idx[:to], a.Val[:to]
}

// reduced returns c - A'y.
func (f *form) reduced(y []float64) []float64 {
	d := slices.Clone(f.c)
	f.a.AddMulT(d, -1, y)
	return d
}

// dot returns a'b.
func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// addTimes adds a·w to v.
func addTimes(v []float64, a float64, w []float64) {
	for i, x := range w {
		v[i] += a * x
	}
}

// divide divides every entry of v by d.
func divide(v []float64, d float64) {
	for i := range v {
		v[i] /= d
	}
}

// costScale returns the largest absolute cost, 1 if all are zero.
func (f *form) costScale() float64 {
	if s := maxAbs(f.c); s > 0 {
		return s
	}
	return 1
}

// Residuals are the violations of the optimality conditions. For row duals y and reduced costs d = c - A'y:
//
//	primal  max_i  violation of row or variable bounds  / max(|bound|, max_j |a_ij| max(1, |x_j|))
//	dual    max_j  part of y_i or d_j on a side with an infinite bound / max(‖c‖, max_i |a_ij y_i|)
//	gap     |p - q| / (‖c‖ + |p|),   p = c'x,   q = Σ_i y_i⁺L_i - y_i⁻U_i + Σ_j d_j⁺l_j - d_j⁻u_j
//
// where ‖c‖ is the largest |c_j|, or 1 if all are zero. They are invariant to scaling a row or the objective. Weak
// duality makes q a bound on the optimum for any y, so a small gap proves the answer.
type Residuals struct {
	Primal, Dual, Gap float64
}

// Max returns the largest.
func (r Residuals) Max() float64 { return math.Max(r.Primal, math.Max(r.Dual, r.Gap)) }

// residuals measures x and y against the optimality conditions. NaN counts as infinite.
func (f *form) residuals(x, y []float64) Residuals {
	scale := f.costScale()
	d := f.reduced(y)
	value := dot(f.c, x)
	bound, wrong := f.dualValue(y, d, scale)
	r := Residuals{Primal: f.primalResidual(x), Dual: wrong, Gap: math.Abs(value-bound) / (scale + math.Abs(value))}
	for _, v := range []*float64{&r.Primal, &r.Dual, &r.Gap} {
		if math.IsNaN(*v) {
			*v = math.Inf(1)
		}
	}
	return r
}

// primalResidual returns the largest scaled violation of a bound by x.
func (f *form) primalResidual(x []float64) float64 {
	worst := 0.0
	activity := make([]float64, f.a.Rows)
	size := make([]float64, f.a.Rows)
	for j, xj := range x {
		worst = math.Max(worst, outside(xj, f.l[j], f.u[j], math.Max(1, math.Abs(xj))))
		most := math.Max(1, math.Abs(xj))
		for k := f.a.Ptr[j]; k < f.a.Ptr[j+1]; k++ {
			i, v := f.a.Idx[k], f.a.Val[k]
			activity[i] += v * xj
			size[i] = math.Max(size[i], math.Abs(v)*most)
		}
	}
	for i, v := range activity {
		if size[i] == 0 {
			size[i] = 1
		}
		worst = math.Max(worst, outside(v, f.lr[i], f.ur[i], size[i]))
	}
	return worst
}

// outside returns how far v is outside [lower, upper], relative to the larger of size and the bound.
func outside(v, lower, upper, size float64) float64 {
	switch {
	case math.IsNaN(v):
		return v
	case v < lower:
		return (lower - v) / math.Max(size, math.Abs(lower))
	case v > upper:
		return (v - upper) / math.Max(size, math.Abs(upper))
	}
	return 0
}

// dualValue returns the bound on the objective from row duals y and reduced costs d. wrong is the largest part of them
// on a side without a finite bound, relative to scale and the part's own terms.
func (f *form) dualValue(y, d []float64, scale float64) (bound, wrong float64) {
	wrongRow := false
	for i, yi := range y {
		b, w := multiplierTimesBound(yi, f.lr[i], f.ur[i])
		bound += b
		wrongRow = wrongRow || w > 0
	}
	if wrongRow {
		wrong = f.wrongRows(y, scale)
	}
	for j, dj := range d {
		b, w := multiplierTimesBound(dj, f.l[j], f.u[j])
		bound += b
		if w == 0 {
			continue
		}
		size := scale
		for k := f.a.Ptr[j]; k < f.a.Ptr[j+1]; k++ {
			size = math.Max(size, math.Abs(f.a.Val[k]*y[f.a.Idx[k]]))
		}
		wrong = math.Max(wrong, w/size)
	}
	return bound, wrong
}

// wrongRows returns the largest part of y on a side without a finite bound, times the largest coefficient of its row,
// relative to scale.
func (f *form) wrongRows(y []float64, scale float64) float64 {
	worst := 0.0
	for k, i := range f.a.Idx {
		_, w := multiplierTimesBound(y[i], f.lr[i], f.ur[i])
		worst = math.Max(worst, w*math.Abs(f.a.Val[k]))
	}
	return worst / scale
}

// multiplierTimesBound returns the product of a multiplier and the bound of its side. If that bound is infinite, it
// returns the absolute multiplier as wrong.
func multiplierTimesBound(y, lower, upper float64) (product, wrong float64) {
	switch {
	case y > 0 && !math.IsInf(lower, 0):
		return y * lower, 0
	case y < 0 && !math.IsInf(upper, 0):
		return y * upper, 0
	}
	return 0, math.Abs(y)
}
