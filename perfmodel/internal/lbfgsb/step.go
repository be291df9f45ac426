package lbfgsb

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// cauchyPoint returns the first local minimum of the quadratic model along the projected steepest descent, and
// the variables that are free there (Byrd et al. 1995, section 4).
func (w *search) cauchyPoint() (point []float64, free []int) {
	n := len(w.x)
	d, meets := make([]float64, n), make([]float64, n) // the direction, and the length at which each variable reaches its bound
	for i, g := range w.g {
		meets[i] = w.meets(i)
		if meets[i] > 0 {
			d[i] = -g
		}
	}
	order := make([]int, 0, n)
	for i := range n {
		if d[i] != 0 && !math.IsInf(meets[i], 1) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(meets[a], meets[b]) })

	point = slices.Clone(w.x)
	held := make([]bool, n)
	at := 0.0
	slope, curve := -floats.Dot(d, d), floats.Dot(d, w.model.times(d))
	least := 0x1p-52 * curve // lower limit of the curvature, against rounding
	for _, i := range order {
		if -slope/curve <= meets[i]-at || slope >= 0 {
			break
		}
		floats.AddScaled(point, meets[i]-at, d)
		point[i] = w.Lower[i]
		if d[i] > 0 {
			point[i] = w.Upper[i]
		}
		at, d[i], held[i] = meets[i], 0, true
		moved := slices.Clone(point)
		floats.Sub(moved, w.x)
		slope = floats.Dot(w.g, d) + floats.Dot(d, w.model.times(moved))
		curve = max(floats.Dot(d, w.model.times(d)), least)
	}
	if slope < 0 && curve > 0 {
		floats.AddScaled(point, -slope/curve, d)
	}
	w.project(point)
	for i := range n {
		if meets[i] > 0 && !held[i] {
			free = append(free, i)
		}
	}
	return point, free
}

// meets returns the length along the negative gradient at which variable i reaches a bound: 0 if it is at the
// bound already, +Inf if it never does.
func (w *search) meets(i int) float64 {
	g := w.g[i]
	lower, upper := w.x[i]-w.Lower[i], w.Upper[i]-w.x[i]
	switch {
	case w.Lower[i] == w.Upper[i], lower <= 0 && g >= 0, upper <= 0 && g <= 0:
		return 0
	case g > 0:
		return lower / g
	case g < 0:
		return upper / -g
	}
	return math.Inf(1)
}

// subspaceMinimum minimises the quadratic model over the free variables, starting at the Cauchy point, and
// projects the result on the bounds (Morales and Nocedal 2011). If that is not a descent direction, it stops at
// the first bound along the step instead.
func (w *search) subspaceMinimum(cauchy []float64, free []int) (point []float64, ok bool) {
	moved := slices.Clone(cauchy)
	floats.Sub(moved, w.x)
	reduced := w.model.times(moved)
	floats.Add(reduced, w.g)

	b, r := mat.NewSymDense(len(free), nil), mat.NewVecDense(len(free), nil)
	for k, i := range free {
		r.SetVec(k, -reduced[i])
		for l := k; l < len(free); l++ {
			b.SetSym(k, l, w.model.b.At(i, free[l]))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(b) {
		return nil, false
	}
	step := mat.NewVecDense(len(free), nil)
	if err := chol.SolveVecTo(step, r); err != nil {
		return nil, false
	}

	point = slices.Clone(cauchy)
	for k, i := range free {
		point[i] += step.AtVec(k)
	}
	w.project(point)
	direction := slices.Clone(point)
	floats.Sub(direction, w.x)
	if floats.Dot(direction, w.g) > 0 {
		point = w.backtrack(cauchy, free, step)
	}
	return point, true
}

// backtrack returns the point furthest along step from cauchy that is within the bounds.
func (w *search) backtrack(cauchy []float64, free []int, step mat.Vector) []float64 {
	share := 1.0
	for k, i := range free {
		if d := step.AtVec(k); d < 0 {
			share = min(share, (w.Lower[i]-cauchy[i])/d)
		} else if d > 0 {
			share = min(share, (w.Upper[i]-cauchy[i])/d)
		}
	}
	point := slices.Clone(cauchy)
	for k, i := range free {
		point[i] += share * step.AtVec(k)
	}
	w.project(point)
	return point
}

const maxLineSearch = 20 // largest number of evaluations in one line search

// lineSearch moves x towards target by a step that meets the Wolfe conditions, and adds it to the model. If
// there is none, it reports false and changes nothing.
func (w *search) lineSearch(target []float64) bool {
	d := slices.Clone(target)
	floats.Sub(d, w.x)
	slope := floats.Dot(w.g, d)
	if !(slope < 0) {
		return false
	}
	most, step := w.longest(d), 1.0
	if w.steps == 0 {
		most = 1
		step = min(1/floats.Norm(d, 2), most)
	}
	if !(most > 0) {
		return false
	}
	search := newWolfe(w.f, slope, step, most)
	x, g := make([]float64, len(d)), make([]float64, len(d))
	for range maxLineSearch {
		floats.AddScaledTo(x, w.x, step, d)
		if step == 1 {
			copy(x, target)
		}
		w.project(x)
		f, ok := w.evaluate(x, g)
		if !ok {
			return false
		}
		next, done := search.next(trial{step, f, floats.Dot(g, d)})
		if done {
			w.accept(x, g, f, -slope*step)
			return true
		}
		step = next
	}
	return false
}

// longest returns the largest step along d within the bounds, at most 1e10.
func (w *search) longest(d []float64) float64 {
	most := 1e10
	for i, v := range d {
		switch {
		case v < 0:
			most = min(most, (w.Lower[i]-w.x[i])/v)
		case v > 0:
			most = min(most, (w.Upper[i]-w.x[i])/v)
		}
	}
	return max(most, 1) // the target is within bounds, except for rounding
}

func (w *search) accept(x, g []float64, f, predicted float64) {
	s, y := slices.Clone(x), slices.Clone(g)
	floats.Sub(s, w.x)
	floats.Sub(y, w.g)
	w.model.add(s, y, predicted, w.Memory)
	w.x, w.g, w.f = x, g, f
}
