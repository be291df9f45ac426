// Package executor runs the command of one measured point. Local, which runs it on this machine, implements
// profiler.Executor.
//
// Start with local.go, then local_linux.go, which explains how all descendants of a command are found and
// ended, and supervise_linux.go, the process that does so.
package executor
