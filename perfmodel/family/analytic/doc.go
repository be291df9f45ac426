// Package analytic predicts a training step from datasheets: the work of each layer on the device, the traffic
// of each kind of parallelism on its links, and the pipeline schedule. It needs no measurement.
//
// Terms: a constant is a share of a datasheet rate that kernels, links or hosts reach, or a similar free
// parameter. A framework is a training stack; a site is a framework on one type of device. An effect is the
// difference between one framework or site and the average in, say, compute or network. A pace is a factor on
// all step times of a site. A domain is the set of devices that a scale-up link joins.
//
// A Prior is a distribution of constants and effects, trained on published measurements. A Calibration fits
// them to measured rows, for package hybrid. Physics is the model with fixed constants.
//
// Start with step.go (a step from its parts), work.go (one layer), collective.go (communication) and
// constants.go (the constants and their sources); then physics.go, prior.go and calibration.go.
package analytic
