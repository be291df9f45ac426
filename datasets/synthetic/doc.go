// Package synthetic makes workloads from a seed: jobs that arrive at random,
// ask for a mix of models and sizes, and run for times with a long tail. They
// are for demonstrations and tests; nothing measured on them is a claim about a
// real cluster.
//
// Start with workload.go.
package synthetic
