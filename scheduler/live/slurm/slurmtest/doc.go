// Package slurmtest starts a real Slurm on this machine for tests: slurmctld and a slurmd for
// each node, with GPUs that do not exist.
package slurmtest
