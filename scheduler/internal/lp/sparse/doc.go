// Package sparse has the sparse matrices of the solvers: compressed columns, a fill-reducing order, the factors of square
// matrices, and the L D L' factors of symmetric quasi-definite ones.
//
// Read matrix.go, then ldl.go; lu.go stands alone.
package sparse
