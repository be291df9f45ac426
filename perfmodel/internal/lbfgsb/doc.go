// Package lbfgsb minimises smooth functions of a few variables within bounds: L-BFGS-B (Byrd, Lu, Nocedal and
// Zhu, SIAM J. Sci. Comput. 16, 1995) with the projected subspace step of Morales and Nocedal (ACM TOMS 38,
// 2011).
//
// gonum has no minimiser with bounds. This one follows the path of the authors' Fortran code, which SciPy's
// minimize runs, and stops at the same point. Published performance models were fitted by that code and stopped
// long before the minimum, so a minimiser with another path would not reproduce them.
//
// The matrix of the quadratic model is dense, which is simpler than the compact form and as fast for about ten
// variables.
//
// Start with lbfgsb.go (the search), then step.go (one step) and wolfe.go (its length).
package lbfgsb
