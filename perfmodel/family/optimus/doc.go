// Package optimus fits the step time of data parallel jobs with or without
// parameter servers by non-negative least squares (Peng et al., Optimus, EuroSys
// 2018).
//
// Start with optimus.go (the three forms), then fit.go and model.go.
package optimus
