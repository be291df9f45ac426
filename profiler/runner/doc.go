// Package runner measures points, with one file per method: torchrun.go trains with PyTorch, command.go runs the
// user's own command, remote.go submits a job that measures, replay.go returns stored rows, synthetic.go returns predictions of a performance model. All implement profiler.Runner.
//
// Start with torchrun.go (one point), torchrun_launch.go (its processes), torchrun_served.go (one device) and torchrun_outcome.go (how the end
// of a training process determines the Outcome).
package runner
