// Package perfmodel defines what a performance model is. A Family fits measurements of one model on one
// accelerator type. The result is a Fitted, which predicts throughput and memory of any configuration, and a
// Card, which states the rows used and the errors on held-out rows.
//
// Terms: a configuration (spec.Config) is a network, an execution plan, devices and links; a row is a
// measurement of one configuration; a row in doubt (spec.Measurement.Doubt) is excluded from fits; a held-out
// row is scored by a fit that did not use it.
//
// Start with perfmodel.go, then fit.go (FitKey: fit and score), family/ for the formulas, memory/ for bytes per
// device, and registry/ for fitted models on disk.
package perfmodel
