// Package runner measures points, one file per way: torchrun.go trains for
// real, replay.go answers from a table of measurements, synthetic.go from a
// performance model. All are profiler.Runners.
//
// Start with torchrun.go, then torchrun_outcome.go: what becomes of each way a
// training process can end.
package runner
