// Package nnls solves least squares problems whose solution must not be
// negative (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter
// 23). gonum has no such solver.
package nnls
