// Package executor runs the command of one measured point somewhere, one file
// per place. Local is this machine. Slurm and Kubernetes fit the same
// interface, profiler.Executor.
//
// Start with local.go; local_linux.go says how everything a command started
// is found and ended, and supervise_linux.go is the process that does it.
package executor
