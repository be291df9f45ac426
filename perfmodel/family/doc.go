// Package family is the table of performance models. Each package below it is
// one kind of model, or two that share a formula: how a step time follows from a
// configuration, which parameters are fitted, and how.
//
//   - analytic: datasheet arithmetic with trained constants; needs no measurement
//   - hybrid: the same, calibrated to measured rows, with a Gaussian process over
//     what is left
//   - rubick: the step as a sum of terms, fitted to a few rows
//   - pollux: data parallel jobs in seven parameters, and Sia's use of them
//   - optimus: data parallel jobs with or without parameter servers
//
// Start with family.go (the table), then rubick/rubick.go for a formula and how
// it is fitted, and analytic/step.go for the one with most physics.
package family
