// Package gp holds Gaussian processes over configurations: the process of the residuals of the analytic model
// ("physics"), its joint posterior with the constants of that model, and the scaling of intervals near measured
// rows.
//
// Start with kernel.go (covariance of two configurations), process.go (fit and prediction), search.go (choice of the
// kernel), learn.go (what kernels usually are), joint.go (process and constants) and scatter.go (scaling). near.go has
// the approximation for many rows.
package gp
