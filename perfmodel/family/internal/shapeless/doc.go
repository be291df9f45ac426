// Package shapeless predicts jobs whose layers are unknown, from their batch,
// placement and parameter servers: a formula with fitted constants, a Gaussian
// process over its residuals, and a prior trained on other models and sites.
//
// Start with form.go (what a formula is and reads), allreduce.go (the formula
// without parameter servers) and effects.go (the prior).
package shapeless
