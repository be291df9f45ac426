package lp

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// interior follows the central path of the homogeneous self-dual model of a standard problem. In
//
//	A x = b τ,  x + w = u τ,  A'y + z - v = c τ,  b'y - u'v - c'x = κ,
//	x, z, w, v, τ, κ >= 0,  xz = wv = τκ = 0
//
// there is always a solution: with τ > 0, (x, y)/τ is optimal; with κ > 0, y proves the problem infeasible or x
// unbounded. z is zero for free columns; w and v exist for columns with an upper bound. Each iteration factors one
// matrix and takes Mehrotra's predictor and corrector steps.
//
// Sources: Xu, Hung and Ye, A simplified homogeneous and self-dual linear programming algorithm and its implementation,
// Annals of Operations Research 62, 1996. Andersen and Andersen, The MOSEK interior point optimizer for linear
// programming, in High Performance Optimization, Kluwer 2000 (upper bounds). Mehrotra, On the implementation of a
// primal-dual interior point method, SIAM J. Optim. 2(4), 1992. Wright, Primal-Dual Interior-Point Methods, SIAM 1997.
type interior struct {
	*standard
	k *kkt

	now   point
	dir   point
	boxed []int // columns with an upper bound

	rd, rp, ru []float64 // residuals of the equations above, ru by boxed
	rg, mu     float64
	hu         []float64 // (v/w) u of boxed columns, zero elsewhere
	p, q       []float64 // the part of the direction that goes with dτ
	pivot      float64   // what dτ is divided by
	r1, r2     []float64
	rxz, rwv   []float64
	d          []float64
	cents      int // complementary pairs, τκ among them

	textbook bool // steps are 0.99 of the way to the boundary to the last, or whole
}

// point is an iterate, or a direction between iterates.
type point struct {
	x, y, z    []float64
	w, v       []float64 // by boxed column
	tau, kappa float64
}

// status is the end of a path.
type status int

const (
	stalled status = iota
	optimal
	infeasible
	unbounded
)

// judge examines an iterate and returns the status that ends the path, or stalled to continue.
type judge func(*interior) status

func newInterior(s *standard) *interior { return newInteriorWith(s, newKKT(s.a, s.free)) }

func newInteriorWith(s *standard, k *kkt) *interior {
	n, m := s.a.Cols, s.a.Rows
	in := &interior{standard: s, k: k}
	for j, u := range s.u {
		if !math.IsInf(u, 1) {
			in.boxed = append(in.boxed, j)
		}
		if !s.free[j] {
			in.cents++
		}
	}
	nb := len(in.boxed)
	in.cents += nb + 1
	in.now = point{ones(n), make([]float64, m), ones(n), ones(nb), ones(nb), 1, 1}
	for j, free := range s.free {
		if free {
			in.now.x[j], in.now.z[j] = 0, 0
		}
	}
	in.dir = point{x: make([]float64, n), y: make([]float64, m), z: make([]float64, n), w: make([]float64, nb), v: make([]float64, nb)}
	in.rd, in.rp, in.ru = make([]float64, n), make([]float64, m), make([]float64, nb)
	in.hu, in.d = make([]float64, n), make([]float64, n)
	in.p, in.q = make([]float64, n), make([]float64, m)
	in.r1, in.r2 = make([]float64, n), make([]float64, m)
	in.rxz, in.rwv = make([]float64, n), make([]float64, nb)
	return in
}

// vanished is the complementarity below which iterates have no significant digits.
const vanished = 1e-30

// run iterates until done ends the path, the limit is reached or progress stops. It returns the number of iterations.
// The error is that of ctx.
func (in *interior) run(ctx context.Context, limit int, done judge) (status, int, error) {
	stuck, lowest := 0, math.Inf(1)
	for it := range limit {
		if err := ctx.Err(); err != nil {
			return stalled, it, fmt.Errorf("lp: stopped after %d iterations: %w", it, err)
		}
		in.residuals()
		if st := done(in); st != stalled {
			return st, it, nil
		}
		if in.mu < vanished {
			return stalled, it, nil
		}
		if in.mu < 0.9*lowest {
			stuck, lowest = 0, in.mu
		} else if stuck++; stuck > 12 {
			return stalled, it, nil
		}
		in.factor()
		if step := in.step(); !(step > 1e-9) {
			return stalled, it + 1, nil
		}
	}
	return stalled, limit, nil
}

// residuals computes the residual of each equation, and the mean complementarity.
func (in *interior) residuals() {
	t := &in.now
	for j, c := range in.c {
		in.rd[j] = c*t.tau - t.z[j]
	}
	for i, b := range in.b {
		in.rp[i] = b * t.tau
	}
	a := in.a
	for j, xj := range t.x {
		sum := 0.0
		rows, vals := a.Column(j)
		for k, i := range rows {
			in.rp[i] -= vals[k] * xj
			sum += vals[k] * t.y[i]
		}
		in.rd[j] -= sum
	}
	in.mu = t.tau * t.kappa
	in.rg = t.kappa
	for k, j := range in.boxed {
		in.rd[j] += t.v[k]
		in.ru[k] = in.u[j]*t.tau - t.x[j] - t.w[k]
		in.mu += t.w[k] * t.v[k]
		in.rg += in.u[j] * t.v[k]
	}
	for j, xj := range t.x {
		in.mu += xj * t.z[j]
		in.rg += in.c[j] * xj
	}
	for i, b := range in.b {
		in.rg -= b * t.y[i]
	}
	in.mu /= float64(in.cents)
}

// factor factors the linear system of this iterate and solves for the dτ part of the direction.
func (in *interior) factor() {
	t := &in.now
	for j := range in.d {
		in.d[j], in.r1[j] = 0, in.c[j]
		if !in.free[j] {
			in.d[j] = t.z[j] / t.x[j]
		}
	}
	for k, j := range in.boxed {
		h := t.v[k] / t.w[k]
		in.d[j] += h
		in.hu[j] = h * in.u[j]
		in.r1[j] -= in.hu[j]
	}
	in.k.set(in.d, math.Min(1e-8, 1e-4*in.mu))
	in.k.solve(in.p, in.q, in.r1, in.b)
	in.pivot = in.tauPivot()
}

// tauPivot returns the divisor of dτ, κ/τ + b'q - (c + hu)'p + u'hu. An equal sum of squares does not cancel, but
// lacks the contribution of free columns in inconsistent systems. Both are too small, if anything.
func (in *interior) tauPivot() float64 {
	t := &in.now
	plain := t.kappa / t.tau
	squares := plain
	for j, pj := range in.p {
		plain -= (in.c[j] + in.hu[j]) * pj
		if !in.free[j] {
			squares += t.z[j] / t.x[j] * pj * pj
		}
	}
	for k, j := range in.boxed {
		plain += in.hu[j] * in.u[j]
		squares += t.v[k] / t.w[k] * (in.p[j] - in.u[j]) * (in.p[j] - in.u[j])
	}
	for i, b := range in.b {
		plain += b * in.q[i]
	}
	return math.Max(plain, squares)
}

// step takes one predictor-corrector step and returns its length.
func (in *interior) step() float64 {
	t, d := &in.now, &in.dir
	for j := range in.rxz {
		in.rxz[j] = -t.x[j] * t.z[j]
	}
	for k := range in.rwv {
		in.rwv[k] = -t.w[k] * t.v[k]
	}
	in.direct(1, -t.tau*t.kappa)
	a := in.longest(1)
	sigma := (1 - a) * (1 - a) * math.Max(1-a, 1e-3)
	goal := sigma * in.mu
	for j := range in.rxz {
		in.rxz[j] = goal - t.x[j]*t.z[j] - d.x[j]*d.z[j]
	}
	for k := range in.rwv {
		in.rwv[k] = goal - t.w[k]*t.v[k] - d.w[k]*d.v[k]
	}
	in.direct(1-sigma, goal-t.tau*t.kappa-d.tau*d.kappa)
	if in.textbook {
		a = math.Min(0.99*in.longest(2), 1)
	} else {
		a = in.longest(1) * math.Max(0.99, math.Min(1-in.mu, 0.9999))
	}
	in.move(a)
	return a
}

// direct computes the direction that removes the share eta of every residual and brings the complementary products to
// the targets rxz, rwv and rtk.
func (in *interior) direct(eta, rtk float64) {
	t, d := &in.now, &in.dir
	for j := range in.r1 {
		in.r1[j] = eta * in.rd[j]
		if !in.free[j] {
			in.r1[j] -= in.rxz[j] / t.x[j]
		}
	}
	num := eta*in.rg + rtk/t.tau
	for k, j := range in.boxed {
		e := (in.rwv[k] - t.v[k]*eta*in.ru[k]) / t.w[k]
		in.r1[j] += e
		num += in.u[j] * e
	}
	for i := range in.r2 {
		in.r2[i] = eta * in.rp[i]
	}
	in.k.solve(d.x, d.y, in.r1, in.r2)
	for j := range d.x {
		num += (in.c[j] + in.hu[j]) * d.x[j]
	}
	for i, b := range in.b {
		num -= b * d.y[i]
	}
	d.tau = num / in.pivot
	in.complete(eta, rtk)
}

// complete derives the rest of the direction from dτ, dx and dy, where dx and dy exclude their dτ part.
func (in *interior) complete(eta, rtk float64) {
	t, d := &in.now, &in.dir
	for j := range d.x {
		d.x[j] += d.tau * in.p[j]
		if !in.free[j] {
			d.z[j] = (in.rxz[j] - t.z[j]*d.x[j]) / t.x[j]
		}
	}
	addTimes(d.y, d.tau, in.q)
	for k, j := range in.boxed {
		d.w[k] = eta*in.ru[k] + in.u[j]*d.tau - d.x[j]
		d.v[k] = (in.rwv[k] - t.v[k]*d.w[k]) / t.w[k]
	}
	d.kappa = (rtk - t.kappa*d.tau) / t.tau
}

// longest returns the longest step, up to the given one, that keeps all values nonnegative.
func (in *interior) longest(most float64) float64 {
	t, d := &in.now, &in.dir
	a := most
	limit := func(v, dv []float64) {
		for i, x := range dv {
			if x < 0 && -v[i] > a*x { // v + a dv < 0
				a = -v[i] / x
			}
		}
	}
	for j, x := range d.x {
		if x < 0 && !in.free[j] && t.x[j] < -a*x {
			a = -t.x[j] / x
		}
	}
	limit(t.z, d.z)
	limit(t.w, d.w)
	limit(t.v, d.v)
	if d.tau < 0 {
		a = math.Min(a, -t.tau/d.tau)
	}
	if d.kappa < 0 {
		a = math.Min(a, -t.kappa/d.kappa)
	}
	return a
}

// move takes a step of length a.
func (in *interior) move(a float64) {
	t, d := &in.now, &in.dir
	addTimes(t.x, a, d.x)
	addTimes(t.y, a, d.y)
	addTimes(t.z, a, d.z)
	addTimes(t.w, a, d.w)
	addTimes(t.v, a, d.v)
	t.tau += a * d.tau
	t.kappa += a * d.kappa
}

// errors returns the relative residuals of the iterate as an optimum of the standard problem.
func (in *interior) errors() (primal, dual, gap float64) {
	t := &in.now
	primal = math.Max(maxAbs(in.rp), maxAbs(in.ru)) / t.tau
	dual = maxAbs(in.rd) / t.tau
	return primal, dual, math.Abs(in.rg-t.kappa) / (t.tau + math.Abs(dot(in.c, t.x)))
}

// scaled returns x/τ and y/τ.
func (in *interior) scaled() (x, y []float64) {
	x, y = slices.Clone(in.now.x), slices.Clone(in.now.y)
	divide(x, in.now.tau)
	divide(y, in.now.tau)
	return x, y
}
