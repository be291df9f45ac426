// Package executor runs the command of one measured point, one file per place.
// Local, which runs it on this machine, implements profiler.Executor.
//
// Start with local.go, then local_linux.go, which explains how every descendant
// of a command is found and ended, and supervise_linux.go, the process that does
// it.
package executor
