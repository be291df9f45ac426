package lbfgsb

import "math"

// wolfe is a line search for a step that meets the strong Wolfe conditions (Moré and Thuente, ACM TOMS 20,
// 1994), with the constants of MINPACK-2 in L-BFGS-B. gonum's line search has other constants, and does not
// keep the bracket of the minimum.
//
// Lengths are along the search direction; slopes are derivatives along it.
type wolfe struct {
	most  float64 // longest step
	start trial   // at length 0
	// best has the lowest function value so far; other is the other end of the searched interval. If bracketed
	// is set, a minimum is between them.
	best, other trial
	bracketed   bool
	least, far  float64 // bounds of the next step
	width       float64 // width of the interval before this step
	widthBefore float64 // width before the previous step
	modified    bool    // the search uses f minus the required decrease
}

// trial is the function value and slope at one step.
type trial struct{ at, f, slope float64 }

const (
	wolfeDecrease  = 1e-3 // required share of the predicted decrease
	wolfeSlope     = 0.9  // largest share of the slope that may remain
	wolfeInterval  = 0.1  // relative width of an interval at which the search ends
	wolfeNear      = 1.1  // smallest next step before a bracket is found, relative to the last one
	wolfeFar       = 4.0  // largest next step, likewise
	wolfeShrinkage = 0.66 // factor by which the interval must shrink in two steps
)

func newWolfe(f, slope, first, most float64) *wolfe {
	start := trial{0, f, slope}
	return &wolfe{most: most, start: start, best: start, other: start, far: first + wolfeFar*first,
		width: most, widthBefore: 2 * most, modified: true}
}

// next evaluates a step. done means that the step is accepted, because it meets the conditions or no better one
// exists. Otherwise next is the step to try.
func (w *wolfe) next(t trial) (next float64, done bool) {
	required := wolfeDecrease * w.start.slope
	enough := t.f <= w.start.f+t.at*required
	switch {
	case w.bracketed && w.exhausted(t.at):
		return t.at, true
	case t.at == w.most && enough && t.slope <= required:
		return t.at, true
	case enough && math.Abs(t.slope) <= wolfeSlope*-w.start.slope:
		return t.at, true
	}
	if enough && t.slope >= 0 {
		w.modified = false
	}
	if w.modified && t.f <= w.best.f && !enough {
		tilt := func(p trial, by float64) trial { return trial{p.at, p.f - by*p.at, p.slope - by} }
		w.best, w.other = tilt(w.best, required), tilt(w.other, required)
		next = w.refine(tilt(t, required))
		w.best, w.other = tilt(w.best, -required), tilt(w.other, -required)
	} else {
		next = w.refine(t)
	}
	return w.safeguard(next), false
}

// exhausted reports whether the bracket is too small to continue.
func (w *wolfe) exhausted(at float64) bool {
	return at <= w.least || at >= w.far || w.far-w.least <= wolfeInterval*w.far
}

// safeguard limits the next step to the useful range.
func (w *wolfe) safeguard(next float64) float64 {
	if w.bracketed {
		width := math.Abs(w.other.at - w.best.at)
		if width >= wolfeShrinkage*w.widthBefore {
			next = w.best.at + (w.other.at-w.best.at)/2
		}
		w.widthBefore, w.width = w.width, width
		w.least, w.far = min(w.best.at, w.other.at), max(w.best.at, w.other.at)
	} else {
		w.least = next + wolfeNear*(next-w.best.at)
		w.far = next + wolfeFar*(next-w.best.at)
	}
	next = min(max(next, 0), w.most)
	if w.bracketed && w.exhausted(next) {
		return w.best.at
	}
	return next
}

// refine adds a step to the interval and returns the estimated position of the minimum.
func (w *wolfe) refine(t trial) (next float64) {
	opposite := t.slope*math.Copysign(1, w.best.slope) < 0
	switch {
	case t.f > w.best.f: // the minimum is between best and t, nearer to best
		cubic, quadratic := w.best.cubic(t), w.best.parabola(t)
		next = cubic
		if math.Abs(cubic-w.best.at) >= math.Abs(quadratic-w.best.at) {
			next += (quadratic - cubic) / 2
		}
		w.bracketed = true
	case opposite: // between, nearer to t
		next = further(t.at, t.cubic(w.best), t.secant(w.best))
		w.bracketed = true
	case math.Abs(t.slope) < math.Abs(w.best.slope): // beyond t, where the slope is smaller
		next = w.extrapolate(t)
	case w.bracketed: // beyond t, where the slope is not smaller
		next = t.cubic(w.other)
	case t.at > w.best.at:
		next = w.far
	default:
		next = w.least
	}
	if t.f > w.best.f {
		w.other = t
		return next
	}
	if opposite {
		w.other = w.best
	}
	w.best = t
	return next
}

// extrapolate returns the estimated position beyond t where the slope is 0.
func (w *wolfe) extrapolate(t trial) float64 {
	cubic, ok := t.cubicBeyond(w.best)
	switch {
	case ok:
	case t.at > w.best.at:
		cubic = w.far
	default:
		cubic = w.least
	}
	secant := t.secant(w.best)
	if !w.bracketed {
		return max(w.least, min(further(t.at, cubic, secant), w.far))
	}
	next := secant
	if math.Abs(cubic-t.at) < math.Abs(secant-t.at) {
		next = cubic
	}
	limit := t.at + wolfeShrinkage*(w.other.at-t.at)
	if t.at > w.best.at {
		return min(limit, next)
	}
	return max(limit, next)
}

// further returns the one of a and b that is further from x, b if they are equally far.
func further(x, a, b float64) float64 {
	if math.Abs(a-x) > math.Abs(b-x) {
		return a
	}
	return b
}

// hermite returns the intermediate values for minimising the cubic through a and b.
func (a trial) hermite(b trial) (theta, gamma float64) {
	theta = 3*(a.f-b.f)/(b.at-a.at) + a.slope + b.slope
	s := max(math.Abs(theta), math.Abs(a.slope), math.Abs(b.slope))
	gamma = s * math.Sqrt(max((theta/s)*(theta/s)-(a.slope/s)*(b.slope/s), 0))
	if b.at < a.at {
		gamma = -gamma
	}
	return theta, gamma
}

// cubic returns the position of the minimum of the cubic with the values and slopes of a and b.
func (a trial) cubic(b trial) float64 {
	theta, gamma := a.hermite(b)
	r := ((gamma - a.slope) + theta) / (((gamma - a.slope) + gamma) + b.slope)
	return a.at + r*(b.at-a.at)
}

// cubicBeyond is cubic for a minimum on the side of a opposite to b; ok is false if the cubic has none there.
func (a trial) cubicBeyond(b trial) (at float64, ok bool) {
	theta, gamma := a.hermite(b)
	r := ((gamma - a.slope) + theta) / ((gamma + (b.slope - a.slope)) + gamma)
	return a.at + r*(b.at-a.at), r < 0 && gamma != 0
}

// parabola returns the position of the minimum of the parabola with a's value and slope and b's value.
func (a trial) parabola(b trial) float64 {
	return a.at + a.slope/((a.f-b.f)/(b.at-a.at)+a.slope)/2*(b.at-a.at)
}

// secant returns the position where the line through both slopes is 0.
func (a trial) secant(b trial) float64 {
	return a.at + a.slope/(a.slope-b.slope)*(b.at-a.at)
}
