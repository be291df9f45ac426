// Package perfmodel defines what a performance model is: a Family fits
// measurements, giving a Fitted that predicts throughput and memory, and a
// Card that says how far to trust it.
//
// Start with perfmodel.go, then family/ for the formulas, memory/ for what a
// plan keeps on each device, and registry/ for fitted models on disk.
package perfmodel
