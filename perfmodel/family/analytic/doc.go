// Package analytic predicts a training step from datasheets: the work of each
// layer on the device, the traffic of each kind of parallelism on its links, and
// the schedule that joins them. It needs no measurement.
//
// What kernels, links and hosts reach of their datasheet figures are constants.
// A Prior is a belief about them, trained on published measurements; a
// Calibration fits them to rows, for package hybrid. An effect is what one
// framework or site (a framework on a kind of device) does differently.
//
// Start with step.go (a step from its parts), work.go (a layer) and constants.go
// (the constants and their sources).
package analytic
