// Package dataparallel holds the code that families pollux, sia and optimus share: the identity of a job, the
// plans they cover, and reading the rows of one job.
//
// Start with job.go.
package dataparallel
