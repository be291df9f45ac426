// Package nnls solves least squares problems with a solution that must not be
// negative (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter
// 23). gonum has no such solver.
//
// Start with nnls.go.
package nnls
