// Package sparse provides the solvers' sparse matrices in compressed columns, a fill-reducing order, LU factors of
// square matrices, and L D L' factors of symmetric quasi-definite matrices.
//
// Read matrix.go, ldl.go and order.go first. lu.go is independent of the latter two.
package sparse
