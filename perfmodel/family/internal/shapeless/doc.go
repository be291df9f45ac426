// Package shapeless predicts jobs with unknown layers ("without a shape") from their batch, placement and
// parameter servers. It has a formula with fitted constants, a Gaussian process on its residuals, and a prior
// trained on other models and sites.
//
// Terms: a form is a formula; a site is a type of device with a training stack; a cell is the fit of a form's
// constants to the rows of one model at one site; an effect is the part of a constant's logarithm that is
// common to a model or to a site.
//
// Start with form.go (what a formula is and uses), allreduce.go and servers.go (the two formulas) and
// effects.go (the prior).
package shapeless
