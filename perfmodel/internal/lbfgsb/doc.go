// Package lbfgsb minimises smooth functions of a few variables within bounds:
// L-BFGS-B (Byrd, Lu, Nocedal and Zhu, SIAM J. Sci. Comput. 16, 1995) with the
// projected subspace step of Morales and Nocedal (ACM TOMS 38, 2011).
//
// gonum has no minimiser with bounds. The path of this one, and where it stops,
// is that of the authors' Fortran code, which SciPy's minimize runs: performance
// models that were published as fitted by it are only reproduced by it, since
// they stop long before the minimum.
//
// The matrix of the quadratic model is kept dense, which is simpler than the
// compact form and as fast for ten variables or so.
package lbfgsb
