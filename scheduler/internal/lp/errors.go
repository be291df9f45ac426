package lp

import (
	"errors"
	"fmt"
)

// What Solve can fail with, to be told apart by errors.Is.
var (
	// ErrInvalid is a problem that means nothing: a coefficient that is not a number, a variable that is not there.
	ErrInvalid = errors.New("not a linear programme")
	// ErrInfeasible is a problem no point satisfies; that of a Problem is an [*InfeasibleError].
	ErrInfeasible = errors.New("infeasible")
	// ErrUnbounded is a feasible problem whose objective improves for ever, an [*UnboundedError].
	ErrUnbounded = errors.New("unbounded")
	// ErrNumerical is a problem that could not be solved to the tolerance; that of a Problem is a [*NumericalError].
	ErrNumerical = errors.New("not solved to the tolerance")
)

// InfeasibleError proves that a problem has no feasible point: with d = -A'y,
//
//	Σ_i y_i⁺L_i - y_i⁻U_i + Σ_j d_j⁺l_j - d_j⁻u_j = 1,
//
// which weak duality forbids where there is one. Parts of y and d that meet an infinite bound are zero, to 1e-8.
type InfeasibleError struct {
	Multipliers []float64 // y, by row, the certificate (Farkas' lemma)
	Rows        []string  // names of the rows that carry the contradiction, heaviest first, at most 5
	Whole       bool      // only whole values of the binary variables make it so: there are no multipliers
	Crossed     string    // the row or variable whose own bounds cross, if that is why; there are no multipliers then
}

func (e *InfeasibleError) Error() string {
	if e.Whole {
		return "lp: infeasible: no choice of 0 or 1 for the binary variables satisfies every row"
	}
	if e.Crossed != "" {
		return "lp: infeasible: the bounds of " + e.Crossed + " cross"
	}
	return fmt.Sprintf("lp: infeasible: rows %q contradict each other or the bounds of their variables", e.Rows)
}

// Is makes errors.Is(err, ErrInfeasible) true.
func (e *InfeasibleError) Is(target error) bool { return target == ErrInfeasible }

// UnboundedError proves that a feasible problem has no optimum: along Ray every constraint is kept and the objective
// improves.
type UnboundedError struct {
	Ray  []float64 // by variable; its largest entry is 1 in size
	Vars []string  // names of the variables that grow, fastest first, at most 5
}

func (e *UnboundedError) Error() string {
	return fmt.Sprintf("lp: unbounded: the objective improves for ever along variables %q; bound one of them", e.Vars)
}

// Is makes errors.Is(err, ErrUnbounded) true.
func (e *UnboundedError) Is(target error) bool { return target == ErrUnbounded }

// NumericalError is what was reached when nothing better could be.
type NumericalError struct {
	Residuals  Residuals
	Tolerance  float64
	Iterations int
}

func (e *NumericalError) Error() string {
	r := e.Residuals
	return fmt.Sprintf("lp: not solved to %g after %d iterations: residuals primal %.2g, dual %.2g, gap %.2g; scale the rows and variables so that coefficients are near 1",
		e.Tolerance, e.Iterations, r.Primal, r.Dual, r.Gap)
}

// Is makes errors.Is(err, ErrNumerical) true.
func (e *NumericalError) Is(target error) bool { return target == ErrNumerical }
