// Package hybrid predicts with the analytic model, calibrated to measured rows. It needs no measurement, and
// each one improves it. A Gaussian process on the residuals, the errors that the calibrated constants leave,
// corrects predictions near measured rows. If a key has enough rows, the result is mixed with family rubick.
// Package shapeless predicts models without known layers ("without a shape").
//
// Terms: physics is the analytic model with calibrated constants; left out means predicted by a fit to the
// other rows; a site is a training stack on one type of device.
//
// Start with hybrid.go (what is fitted, in which order), calibrated.go (physics and residuals), mixture.go and
// gain.go (the expected benefit of a further measurement).
package hybrid
