// Package scheduling is the benchmark of scheduling policies behind pacer bench scheduling:
// policies on many kinds of workloads, with intervals over seeds.
//
// Terms:
//
//   - A cell is one choice of cluster, load, sizes, durations, arrivals, costs, truth and
//     belief. Its workloads are drawn from it by a seed, or are a recorded trace.
//   - The best other of a policy is, for each workload, the least figure among all other
//     policies but those that know true remaining times, srtf and optimus-oracle.
//   - A variant is a cell that differs from another in times or in what policies know; it has
//     the same jobs.
//
// All policies get the same jobs of a cell and a seed, and all cells draw from the same
// streams, so ratios are paired by seed.
//
// Start with cell.go, then read.go (the file of cells), run.go (runs, on package study) and
// score.go (ratios and intervals).
package scheduling
