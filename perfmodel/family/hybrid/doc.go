// Package hybrid predicts with the analytic model calibrated to measured rows:
// it needs no measurement and gains from each. Above the calibrated constants
// lies a Gaussian process over the errors that are left. Where rows suffice, the
// result is mixed with family rubick's. Models without known layers are
// predicted by package shapeless.
//
// Start with hybrid.go (what is fitted in which order), calibrated.go (physics
// and process) and gain.go (what a further measurement would teach).
package hybrid
