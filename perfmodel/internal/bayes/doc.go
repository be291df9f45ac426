// Package bayes fits non-linear models of log step times to few rows. It finds the maximum a posteriori (the
// mode) under a Gaussian prior of the parameters and a robust likelihood. The posterior is the Gaussian around
// the mode (Laplace's method). Fits are deterministic.
//
// Start with bayes.go: Regression is the input, Mode and Posterior are the results.
package bayes
