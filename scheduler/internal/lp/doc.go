// Package lp solves linear programmes, and the choice of one option per group under capacities.
//
// A [Problem] has variables x with bounds and costs, and rows with bounds; any bound may be infinite:
//
//	minimise (or maximise)   c'x
//	subject to               L <= A x <= U    (rows)
//	                         l <=  x  <= u    (variables)
//
// [Problem.Solve] returns values, duals and the objective, or an error with the reason there is none. It checks every
// answer against the problem as stated: [Residuals] above 1e-8 return [ErrNumerical]. A maximisation counts as the
// minimisation of -c'x, with negated duals.
//
// Infeasibility is proven by Farkas' lemma: row multipliers y with q > 0 for c = 0 (q as in [Residuals]). Unboundedness
// is proven by a feasible point and an improving direction that keeps every bound. Both certificates are checked before
// [ErrInfeasible] or [ErrUnbounded] is returned.
//
// Two structured problems have solvers of their own, which prove answers by prices on scarce resources. [MaxMin] solves
// max-min fairness; [Choice] picks one option per group under capacities.
//
// The package is deterministic: equal problems give equal bits.
//
// Start with problem.go, solve.go and interior.go. A problem is presolved (presolve.go), scaled into standard form
// (standard.go, scale.go), solved by an interior-point method (interior.go over kkt.go over package sparse), if needed
// moved to a vertex (vertex.go, pivot.go), and checked (form.go). maxmin.go and choice.go share mixture.go.
package lp
