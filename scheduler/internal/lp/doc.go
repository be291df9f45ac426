// Package lp solves linear programmes, and 0/1 programmes over them.
//
// A [Problem] has variables x with bounds and costs, and rows with bounds; either side of either may be infinite:
//
//	minimise (or maximise)   c'x + offset
//	subject to               L <= A x <= U    (rows)
//	                         l <=  x  <= u    (variables)
//
// [Problem.Solve] answers with values, duals and the objective, or with an error that says why there is none. Every
// answer is checked against the problem as it was stated, not against the solver's own numbers: for a minimisation
// (a maximisation is the minimisation of -c'x, and its duals have their signs turned) with row duals y and reduced
// costs d = c - A'y, [Residuals] are
//
//	primal  max_i  violation of row or variable bounds  / max(|bound|, max_j |a_ij| max(1, |x_j|))
//	dual    max_j  part of y_i or d_j whose side has an infinite bound / max(‖c‖, max_i |a_ij y_i|)
//	gap     |p - q| / (‖c‖ + |p|),   p = c'x,   q = Σ_i y_i⁺L_i - y_i⁻U_i + Σ_j d_j⁺l_j - d_j⁻u_j
//
// where ‖c‖ is the largest |c_j|, or 1 if all are zero. They do not change when a row or the objective is multiplied
// by a constant. Weak duality makes q a bound on the optimum whatever produced y, so a small gap proves the answer.
// One that is worse than the tolerance (1e-8) is [ErrNumerical], never an answer.
//
// The proof of infeasibility is Farkas': row multipliers y with q > 0 for c = 0. The proof of unboundedness is a
// direction that keeps every bound and improves the objective, together with a feasible problem. Both are checked
// likewise before [ErrInfeasible] or [ErrUnbounded] is returned.
//
// Two kinds of problem have solvers of their own, which know their structure and prove their answers by prices on what
// is scarce: [MaxMin], which also fills lexicographically, and [Choice], one option of each group under capacities. Any problem with 0/1 variables is solved by branch and bound, [Problem.SolveInteger], with a bound proven
// whenever it stops.
//
// Nothing in this package is random and nothing depends on the order of a map: the same problem gives the same bits.
//
// Read problem.go, solve.go and interior.go first: a form is presolved (presolve.go), scaled into standard form
// (standard.go, scale.go), followed along the central path (interior.go over kkt.go over package sparse), if need be
// walked on from vertex to vertex (vertex.go) and checked (form.go). maxmin.go and choice.go share mixture.go.
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
