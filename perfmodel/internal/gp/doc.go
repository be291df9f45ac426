// Package gp holds Gaussian processes over configurations: the process of the residuals of the analytic model
// ("physics"), its joint posterior with the constants of that model, and the scaling of intervals near measured
// rows.
//
// Start with process.go (kernel and fit), joint.go (process and constants), point.go (distance between
// configurations) and scatter.go (scaling). near.go has the approximation for many rows.
package gp
