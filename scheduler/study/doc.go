// Package study runs a scheduling study: every scheduler on every workload, load
// and seed, with confidence intervals over the seeds, and beside every result
// how far it is from what no schedule can beat.
//
// Start with study.go (what a study is), runner.go (how its runs are run and
// kept), bound.go (the lower bounds, with their proofs) and row.go (what comes
// out). read.go reads a study from YAML.
//
// Runs with one seed and load have the same jobs, arrivals and noise whatever
// the scheduler (common random numbers), so that differences between schedulers
// are taken pair by pair. Every run is a function of its inputs: the results do
// not depend on how many are run at a time, nor on which were kept from before.
package study
