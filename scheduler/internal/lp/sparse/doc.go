// Package sparse has the sparse matrices of the interior-point solver: compressed columns, a fill-reducing order, and
// the L D L' factors of symmetric quasi-definite matrices.
//
// Read matrix.go, then ldl.go.
package sparse
