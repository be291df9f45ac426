// Package loss is how the training loss of a job falls, and what follows of when it
// will have converged.
//
// Start with curve.go, the form; fit.go finds one for what a job has logged, and
// made.go makes logs for the simulator, where jobs have none.
package loss
