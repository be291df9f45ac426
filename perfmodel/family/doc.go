// Package family is the table of performance models. Each package below it implements one model, or two that
// share a formula: how the step time follows from a configuration, which parameters are fitted, and how.
//
//   - analytic: counted work over datasheet rates, with constants trained on published measurements; needs no
//     measurement of its own
//   - hybrid: analytic, calibrated to measured rows, plus a Gaussian process on the remaining error
//   - rubick: the step as a sum of terms with seven parameters, fitted to a few rows
//   - pollux: data parallel jobs, seven parameters; and sia, which uses the same formula per accelerator type
//   - optimus: data parallel jobs with or without parameter servers
//
// Start with family.go (the table), then rubick/rubick.go for a small formula and its fit, and analytic/step.go
// for the most detailed one.
package family
