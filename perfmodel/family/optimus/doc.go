// Package optimus fits the step time of data parallel jobs, with or without parameter servers, by non-negative
// least squares (Peng et al., Optimus, EuroSys 2018).
//
// Terms: a worker is a replica; a form is a step time formula, linear in its parameters, for one kind of
// training (synchronous, asynchronous, all-reduce).
//
// Start with optimus.go (the three forms), then fit.go and model.go.
package optimus
