// Package lp solves linear programmes, and 0/1 programmes over them.
//
// A [Problem] has variables x with bounds and costs, and rows with bounds; any bound may be infinite:
//
//	minimise (or maximise)   c'x + offset
//	subject to               L <= A x <= U    (rows)
//	                         l <=  x  <= u    (variables)
//
// [Problem.Solve] returns values, duals and the objective, or an error with the reason there is none. It checks every
// answer against the problem as stated. A maximisation counts as the minimisation of -c'x, with negated duals. For row
// duals y and reduced costs d = c - A'y, the [Residuals] are
//
//	primal  max_i  violation of row or variable bounds  / max(|bound|, max_j |a_ij| max(1, |x_j|))
//	dual    max_j  part of y_i or d_j on a side with an infinite bound / max(‖c‖, max_i |a_ij y_i|)
//	gap     |p - q| / (‖c‖ + |p|),   p = c'x,   q = Σ_i y_i⁺L_i - y_i⁻U_i + Σ_j d_j⁺l_j - d_j⁻u_j
//
// where ‖c‖ is the largest |c_j|, or 1 if all are zero. They are invariant to scaling a row or the objective. Weak
// duality makes q a bound on the optimum for any y, so a small gap proves the answer. Residuals above the tolerance
// (1e-8) return [ErrNumerical].
//
// Infeasibility is proven by Farkas' lemma: row multipliers y with q > 0 for c = 0. Unboundedness is proven by a feasible
// point and an improving direction that keeps every bound. Both certificates are checked before [ErrInfeasible] or
// [ErrUnbounded] is returned.
//
// Two structured problems have solvers of their own, which prove answers by prices on scarce resources. [MaxMin] solves
// max-min fairness and water-filling; [Choice] picks one option per group under capacities. [Problem.SolveInteger] solves
// any problem with 0/1 variables by branch and bound, with a proven bound whenever it stops.
//
// The package is deterministic: equal problems give equal bits.
//
// Read problem.go, solve.go and interior.go first. A form is presolved (presolve.go), scaled into standard form
// (standard.go, scale.go), solved by an interior-point method (interior.go over kkt.go over package sparse), if needed
// moved to a vertex (vertex.go, pivot.go), and checked (form.go). maxmin.go and choice.go share mixture.go.
//
// References:
//
//   - S. J. Wright, Primal-Dual Interior-Point Methods, SIAM 1997.
//   - S. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2(4), 1992.
//   - E. D. Andersen, K. D. Andersen, Presolving in linear programming, Mathematical Programming 71, 1995.
//   - X. Xu, P.-F. Hung, Y. Ye, A simplified homogeneous and self-dual linear programming algorithm and its
//     implementation, Annals of Operations Research 62, 1996.
//   - E. D. Andersen, K. D. Andersen, The MOSEK interior point optimizer for linear programming: an implementation of
//     the homogeneous algorithm, in High Performance Optimization, Kluwer 2000.
package lp
