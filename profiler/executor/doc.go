// Package executor runs the command of one measured point. Local, which runs it on this machine, implements
// profiler.Executor. A Cluster, such as Slurm, runs it as a job that outlives this process.
//
// Start with local.go, then local_linux.go, which explains how all descendants of a command are found and
// ended, and guard_linux.go and supervise_linux.go, the processes that do so. Sweep ends what is left after all of them
// were killed. job.go has the interface of clusters, slurm.go and ssh.go those there are; package kubejob of cmd has another.
package executor
