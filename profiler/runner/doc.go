// Package runner measures points, one file per way: torchrun.go trains with
// PyTorch, replay.go answers from stored rows, synthetic.go from a performance
// model. All implement profiler.Runner.
//
// Start with torchrun.go (one point), torchrun_launch.go (its processes) and
// torchrun_outcome.go (how each end of a training process becomes an Outcome).
package runner
