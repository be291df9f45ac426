// Package synthetic generates workloads from a seed: jobs with random arrivals,
// a mix of models and sizes, and long-tailed run times. They are for
// demonstrations and tests; results on them say nothing about a real cluster.
//
// Start with workload.go (the jobs), options.go (their description as text) and
// fit.go (options that resemble a trace).
package synthetic
