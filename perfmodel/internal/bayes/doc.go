// Package bayes fits non-linear models of log step times to few rows: the
// maximum a posteriori under a Gaussian prior of the parameters and a robust
// likelihood, and the Gaussian around it (Laplace's method) as the posterior. Fits
// are deterministic.
//
// Start with bayes.go: Problem is the input, Mode and Posterior the results.
package bayes
