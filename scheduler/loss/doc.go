// Package loss models the training loss of a job and predicts its convergence.
//
// Read curve.go (the model), fit.go (its fit to a job's log) and synthetic.go (logs for simulated jobs) first.
package loss
