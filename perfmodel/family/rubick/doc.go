// Package rubick fits the decomposed step time of Zhang et al., Rubick, MLSys
// 2025, to a few rows of one model on one accelerator: compute, synchronization,
// optimizer, offload and a constant, ten parameters in all.
//
// Start with rubick.go (formula, parameters and their priors), terms.go (what a
// configuration contributes) and fit.go (the posterior).
package rubick
