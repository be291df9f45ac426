// Package study runs a scheduling study: every scheduler on every workload, load and
// seed. Results have confidence intervals over the seeds, and their ratios to lower
// bounds that no schedule can beat.
//
// Terms:
//
//   - A scheduler is a policy with its settings.
//   - The load is the device-seconds requested per second and device of the cluster.
//   - A cell is one run: a workload, a load, a scheduler and a seed.
//   - A record is the stored result of a cell; a row summarizes the cells that differ
//     only in the seed.
//   - The baseline is the scheduler that another is compared with.
//
// Start with study.go, which describes a study; runner.go, which runs it and stores
// records; bound.go, the lower bounds with their proofs; and row.go, the results. read.go
// reads a study from YAML.
//
// Cells with equal workload, load and seed have the same jobs, arrivals and noise for
// every scheduler (common random numbers), so schedulers are compared in pairs. Results
// depend on the inputs only, not on the number of workers or on stored records.
package study
