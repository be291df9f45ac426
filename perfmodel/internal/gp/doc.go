// Package gp holds Gaussian processes over configurations: the process over what
// physics leaves unexplained, its posterior together with the constants of the
// physics, and by how much intervals near measured rows are widened.
//
// Start with process.go (kernel and fit), joint.go (process and constants) and
// point.go (distance between configurations).
package gp
