package lbfgsb

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// ErrNotFinite means the function or its gradient was not finite at the start.
var ErrNotFinite = errors.New("lbfgsb: function or gradient not finite at the start")

// Problem is a function to minimise within bounds.
type Problem struct {
	// Func returns the function at x and writes its gradient to grad. It must
	// not keep or change x.
	Func func(x, grad []float64) float64
	// Lower and Upper bound each variable; ±Inf = no bound. A variable with
	// equal bounds is fixed.
	Lower, Upper []float64
	// Stop is called before each evaluation of Func; its error ends the search
	// with it. nil = never.
	Stop func() error
}

// Settings says when to stop. The zero value stops as SciPy does by default.
type Settings struct {
	Memory int // steps remembered, 0 = 10
	// RelDecrease stops when a step lowers f by at most this share of
	// max(|before|, |after|, 1); 0 = 2.2e-9.
	RelDecrease float64
	// Gradient stops when no component of the projected gradient is larger;
	// 0 = 1e-5.
	Gradient float64
	MaxSteps int // 0 = 15,000
}

// Result is where a search ended.
type Result struct {
	X     []float64
	F     float64
	Steps int
	// Converged is false when the search ran out of steps or its line search
	// could not go on; X is the best point all the same.
	Converged bool
}

// search is one Minimize in progress.
type search struct {
	Problem
	Settings
	x, g  []float64
	f     float64
	model model
	steps int
	err   error // of Stop
}

// Minimize searches from x0, which is first moved within the bounds. Errors: lengths
// that differ, bounds that cross, ErrNotFinite, and that of Stop.
func Minimize(p Problem, x0 []float64, s Settings) (Result, error) {
	n := len(x0)
	if len(p.Lower) != n || len(p.Upper) != n {
		return Result{}, fmt.Errorf("lbfgsb: %d variables, %d lower and %d upper bounds, want as many", n, len(p.Lower), len(p.Upper))
	}
	for i := range x0 {
		if !(p.Lower[i] <= p.Upper[i]) {
			return Result{}, fmt.Errorf("lbfgsb: bounds %g and %g of variable %d cross", p.Lower[i], p.Upper[i], i)
		}
	}
	w := &search{Problem: p, Settings: s.withDefaults(), x: slices.Clone(x0), g: make([]float64, n)}
	p.project(w.x)
	var ok bool
	if w.f, ok = w.evaluate(w.x, w.g); !ok {
		return Result{}, cmp.Or(w.err, ErrNotFinite)
	}
	w.model.reset(n)
	ok = w.run()
	if w.err != nil {
		return Result{}, w.err
	}
	return Result{X: w.x, F: w.f, Steps: w.steps, Converged: ok}, nil
}

func (s Settings) withDefaults() Settings {
	if s.Memory == 0 {
		s.Memory = 10
	}
	if s.RelDecrease == 0 {
		s.RelDecrease = 2.220446049250313e-9
	}
	if s.Gradient == 0 {
		s.Gradient = 1e-5
	}
	if s.MaxSteps == 0 {
		s.MaxSteps = 15_000
	}
	return s
}

// evaluate returns the function at x and writes its gradient to g; ok is false
// where they are not finite, and once Stop returned an error.
func (w *search) evaluate(x, g []float64) (f float64, ok bool) {
	if w.Stop != nil {
		if w.err = w.Stop(); w.err != nil {
			return 0, false
		}
	}
	f = w.Func(x, g)
	return f, finite(f, g)
}

// run steps until a stop applies; it reports whether the search converged.
func (w *search) run() bool {
	if w.projectedGradient() <= w.Gradient {
		return true
	}
	for w.steps < w.MaxSteps {
		before := w.f
		if target, ok := w.target(); !ok || !w.lineSearch(target) {
			if len(w.model.s) == 0 || w.err != nil {
				return false // steepest descent cannot go on
			}
			w.model.reset(len(w.x))
			continue
		}
		w.steps++
		if w.projectedGradient() <= w.Gradient || before-w.f <= w.RelDecrease*max(math.Abs(before), math.Abs(w.f), 1) {
			return true
		}
	}
	return false
}

// target returns the point the quadratic model proposes within the bounds; ok is
// false when the model is no good.
func (w *search) target() (point []float64, ok bool) {
	cauchy, free := w.cauchyPoint()
	if len(free) == 0 || len(w.model.s) == 0 {
		return cauchy, true
	}
	return w.subspaceMinimum(cauchy, free)
}

// projectedGradient returns the largest component of the gradient that bounds
// leave.
func (w *search) projectedGradient() float64 {
	most := 0.0
	for i, g := range w.g {
		switch {
		case g < 0:
			g = max(w.x[i]-w.Upper[i], g)
		default:
			g = min(w.x[i]-w.Lower[i], g)
		}
		most = max(most, math.Abs(g))
	}
	return most
}

// project moves x within the bounds.
func (p *Problem) project(x []float64) {
	for i := range x {
		x[i] = min(max(x[i], p.Lower[i]), p.Upper[i])
	}
}

// model is the quadratic model's matrix B and the steps it is made of.
type model struct {
	s, y  [][]float64 // steps and changes of the gradient, oldest first
	scale float64     // B without any step is scale times the identity
	b     *mat.SymDense
}

func (m *model) reset(n int) {
	m.s, m.y, m.scale = nil, nil, 1
	m.build(n)
}

// add remembers a step, at most memory of them; slope is the decrease the
// gradient before the step promised for it. Steps along which the function
// does not curve upwards are passed over.
func (m *model) add(s, y []float64, slope float64, memory int) {
	const eps = 0x1p-52
	sy := floats.Dot(s, y)
	if sy <= eps*slope {
		return
	}
	m.s, m.y = append(m.s, s), append(m.y, y)
	if len(m.s) > memory {
		m.s, m.y = m.s[1:], m.y[1:]
	}
	m.scale = floats.Dot(y, y) / sy
	m.build(len(s))
}

// build applies the BFGS updates of all remembered steps.
func (m *model) build(n int) {
	m.b = mat.NewSymDense(n, nil)
	for i := range n {
		m.b.SetSym(i, i, m.scale)
	}
	bs := mat.NewVecDense(n, nil)
	for k, s := range m.s {
		sv, yv := mat.NewVecDense(n, s), mat.NewVecDense(n, m.y[k])
		bs.MulVec(m.b, sv)
		m.b.SymRankOne(m.b, -1/mat.Dot(sv, bs), bs)
		m.b.SymRankOne(m.b, 1/mat.Dot(sv, yv), yv)
	}
}

// times returns B·v.
func (m *model) times(v []float64) []float64 {
	out := mat.NewVecDense(len(v), nil)
	out.MulVec(m.b, mat.NewVecDense(len(v), v))
	return out.RawVector().Data
}

func finite(f float64, g []float64) bool {
	for _, v := range append([]float64{f}, g...) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
