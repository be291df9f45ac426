package lp

import (
	"context"
	"math"
	"slices"
)

const (
	refineBelow = 1e-5 // residual below which an iterate is near enough to be refined
	farPart     = 10   // bounds and reduced costs farther than this part of the problem's scale are out of reach
)

// refineZooms are tried in turn. Which is best depends on how thin the sliver is.
var refineZooms = []float64{1e5, 1e5, 1e4, 1e6, 1e3}

// refine makes the best iterate in out more exact by solving for what it lacks, magnified (Gleixner, Steffy and Wolter,
// Iterative refinement for linear programming, INFORMS J. Computing 28(3), 2016): with x = x* + x'/Δ and y = y* + y'/Δ
// the problem in x' and y' has the same matrix, the residuals of x* and y* times Δ as right sides and costs, and
// room where the first had next to none. That is what is left to do when the feasible points, or the optima, lie in a
// sliver too thin for the first problem's scale.
func (f *form) refine(ctx context.Context, s *standard, out *outcome, o Options) error {
	for _, zoom := range refineZooms {
		if out.residuals.Max() <= o.tolerance() {
			return nil
		}
		part := s.magnified(out.sx, out.sy, zoom)
		step, err := part.path(ctx, o, nil, false)
		out.iterations += step.iterations
		if err != nil {
			return err
		}
		if step.x != nil {
			f.advance(s, out, step, zoom)
		}
	}
	return nil
}

// advance adds a step, which was magnified, to the best iterate in out if that makes it better.
func (f *form) advance(s *standard, out *outcome, step outcome, zoom float64) {
	x, y := slices.Clone(out.sx), slices.Clone(out.sy)
	for j, v := range step.x {
		x[j] += v / zoom
		if !s.free[j] {
			x[j] = math.Max(0, math.Min(s.u[j], x[j]))
		}
	}
	for i, v := range step.y {
		y[i] += v / zoom
	}
	fx, fy := s.solution(x, y)
	f.clamp(fx)
	if r := f.residuals(fx, fy); r.Max() < out.residuals.Max() {
		out.x, out.y, out.sx, out.sy, out.residuals = fx, fy, x, y, r
	}
}

// magnified returns the problem of what x and y lack, times zoom.
func (s *standard) magnified(x, y []float64, zoom float64) *form {
	n, m := s.a.Cols, s.a.Rows
	farAway := zoom / farPart
	f := &form{a: s.a, c: slices.Clone(s.c), l: make([]float64, n), u: make([]float64, n), lr: slices.Clone(s.b)}
	s.a.AddMul(f.lr, -1, x)
	s.a.AddMulT(f.c, -1, y)
	for i := range m {
		f.lr[i] *= zoom
	}
	f.ur = f.lr
	for j := range n {
		f.c[j] *= zoom
		if s.free[j] {
			f.l[j], f.u[j] = -farAway, farAway
			continue
		}
		f.l[j] = math.Max(-farAway, -zoom*x[j])
		f.u[j] = math.Min(farAway, zoom*(s.u[j]-x[j]))
		switch { // what wants to be at its bound, and is near it, is put there
		case f.c[j] > farAway && f.l[j] > -farAway:
			f.u[j] = f.l[j]
		case f.c[j] < -farAway && f.u[j] < farAway:
			f.l[j] = f.u[j]
		}
		f.c[j] = math.Max(-farAway, math.Min(farAway, f.c[j]))
	}
	return f
}
