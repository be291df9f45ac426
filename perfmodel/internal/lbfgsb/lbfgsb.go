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

// ErrNotFinite means that the function or its gradient was not finite at the start.
var ErrNotFinite = errors.New("lbfgsb: function or gradient not finite at the start")

// Objective is a function to minimise within bounds.
type Objective struct {
	// Func returns the function at x and writes its gradient to grad. It must not retain or change x.
	Func func(x, grad []float64) float64
	// Lower and Upper are the bounds of each variable; ±Inf = no bound. A variable with equal bounds is fixed.
	Lower, Upper []float64
	// Stop is called before each evaluation of Func. If it returns an error, the search ends with that error.
	// nil = never stop.
	Stop func() error
}

// Settings are the stopping rules. The zero value stops like SciPy's default.
type Settings struct {
	Memory int // number of previous steps in the model, 0 = 10
	// RelDecrease stops the search if a step lowers f by at most this share of max(|before|, |after|, 1); 0 =
	// 2.2e-9.
	RelDecrease float64
	// Gradient stops the search if no component of the projected gradient is larger; 0 = 1e-5.
	Gradient float64
	MaxSteps int // 0 = 15,000
}

// Result is the end point of a search.
type Result struct {
	X []float64
	F float64
	// Converged is false if the search ran out of steps or its line search failed; X is still the best point
	// found.
	Converged bool
}

// search is the state of one Minimize.
type search struct {
	Objective
	Settings
	x, g  []float64
	f     float64
	model model
	steps int
	err   error // error of Stop
}

// Minimize searches from x0, moved into the bounds first. It does not change x0. Errors are: different lengths,
// a lower bound above its upper bound, ErrNotFinite, and the error of Stop.
func Minimize(p Objective, x0 []float64, s Settings) (Result, error) {
	n := len(x0)
	if len(p.Lower) != n || len(p.Upper) != n {
		return Result{}, fmt.Errorf("lbfgsb: %d variables, %d lower and %d upper bounds, want equal numbers", n, len(p.Lower), len(p.Upper))
	}
	for i := range x0 {
		if !(p.Lower[i] <= p.Upper[i]) {
			return Result{}, fmt.Errorf("lbfgsb: bounds %g and %g of variable %d, want lower <= upper", p.Lower[i], p.Upper[i], i)
		}
	}
	w := &search{Objective: p, Settings: s.withDefaults(), x: slices.Clone(x0), g: make([]float64, n)}
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
	return Result{X: w.x, F: w.f, Converged: ok}, nil
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

// evaluate returns the function at x and writes its gradient to g. ok is false if they are not finite, or if
// Stop returned an error.
func (w *search) evaluate(x, g []float64) (f float64, ok bool) {
	if w.Stop != nil {
		if w.err = w.Stop(); w.err != nil {
			return 0, false
		}
	}
	f = w.Func(x, g)
	return f, finite(f, g)
}

// run takes steps until a stopping rule applies. It reports whether the search converged.
func (w *search) run() bool {
	if w.projectedGradient() <= w.Gradient {
		return true
	}
	for w.steps < w.MaxSteps {
		before := w.f
		if target, ok := w.target(); !ok || !w.lineSearch(target) {
			if len(w.model.s) == 0 || w.err != nil {
				return false // steepest descent failed
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

// target returns the minimum of the quadratic model within the bounds; ok is false if the model is not convex.
func (w *search) target() (point []float64, ok bool) {
	cauchy, free := w.cauchyPoint()
	if len(free) == 0 || len(w.model.s) == 0 {
		return cauchy, true
	}
	return w.subspaceMinimum(cauchy, free)
}

// projectedGradient returns the largest component of the gradient projected on the bounds.
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

// project moves x into the bounds.
func (p *Objective) project(x []float64) {
	for i := range x {
		x[i] = min(max(x[i], p.Lower[i]), p.Upper[i])
	}
}

// model is the quadratic model's matrix B and the steps it is built from.
type model struct {
	s, y  [][]float64 // steps and changes of the gradient, oldest first
	scale float64     // without any step, B is scale times the identity
	b     *mat.SymDense
}

func (m *model) reset(n int) {
	m.s, m.y, m.scale = nil, nil, 1
	m.build(n)
}

// add appends a step and keeps at most memory steps. slope is the decrease that the gradient before the step
// predicts for it. It skips steps along which the function has no positive curvature.
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

// build applies the BFGS updates of all steps.
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
