// Package nnls solves least squares problems with non-negative solutions (Lawson and Hanson, Solving Least
// Squares Problems, 1974, chapter 23). gonum has no such solver.
//
// Start with nnls.go.
package nnls
