// Package batch predicts the rows of a file, calibrated to measured rows of the same form.
//
// Start with batch.go (a run over a file), then calibrate.go (the rows it learns from), site.go
// (what rows of the same job and machine share) and row.go (the result of a row).
package batch
