package lp

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is.
var (
	// ErrInvalid reports a malformed problem, such as a coefficient that is not finite or an unknown variable.
	ErrInvalid = errors.New("malformed linear programme")
	// ErrInfeasible reports that no point satisfies the constraints; a Problem returns an [*InfeasibleError].
	ErrInfeasible = errors.New("infeasible")
	// ErrUnbounded reports a feasible problem with an objective that improves without limit, an [*UnboundedError].
	ErrUnbounded = errors.New("unbounded")
	// ErrNumerical reports that the tolerance was not reached; a Problem returns a [*NumericalError].
	ErrNumerical = errors.New("not solved to the tolerance")
)

// InfeasibleError proves that a problem has no feasible point. With d = -A'y it holds that
//
//	Σ_i y_i⁺L_i - y_i⁻U_i + Σ_j d_j⁺l_j - d_j⁻u_j = 1,
//
// which weak duality excludes for a feasible problem. Parts of y and d that meet an infinite bound are zero, to 1e-8.
type InfeasibleError struct {
	Multipliers []float64 // y, by row: the certificate (Farkas' lemma)
	Rows        []string  // names of the rows with the largest multipliers, largest first, at most 5
	Crossed     string    // row or variable with crossing bounds, if any; Multipliers is nil then
}

func (e *InfeasibleError) Error() string {
	if e.Crossed != "" {
		return "lp: infeasible: the bounds of " + e.Crossed + " cross"
	}
	return fmt.Sprintf("lp: infeasible: rows %q contradict each other or the bounds of their variables", e.Rows)
}

// Is makes errors.Is(err, ErrInfeasible) true.
func (e *InfeasibleError) Is(target error) bool { return target == ErrInfeasible }

// UnboundedError proves that a feasible problem has no optimum: along Ray every constraint holds and the objective
// improves.
type UnboundedError struct {
	Ray  []float64 // by variable; its largest entry is 1 in size
	Vars []string  // names of the variables that grow, fastest first, at most 5
}

func (e *UnboundedError) Error() string {
	return fmt.Sprintf("lp: unbounded: the objective improves without limit along variables %q; bound one of them", e.Vars)
}

// Is makes errors.Is(err, ErrUnbounded) true.
func (e *UnboundedError) Is(target error) bool { return target == ErrUnbounded }

// NumericalError reports the best residuals reached.
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
