// Package rubick fits the decomposed step time of Rubick (Zhang et al., MLSys 2025) to a few rows of one model
// on one accelerator: compute, synchronization, optimizer, offload and a constant, with ten parameters.
//
// Terms: a job type is a (model, accelerator) key; terms are the parts of the formula that follow from a
// configuration; a reading is one of two interpretations of pipeline plans that record a single micro-batch.
//
// Start with rubick.go (formula, parameters and their priors), terms.go (the terms of a configuration) and
// fit.go (the posterior).
package rubick
