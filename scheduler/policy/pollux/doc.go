// Package pollux holds Pollux (Qiao et al., OSDI 2021): a genetic search over placements
// for the fairest goodput of all jobs.
//
//	row        the devices of one job on each node
//	schedule   a row per job, an individual of the search
//	speedup    goodput of a job over that on its fair share of the cluster
//	fitness    power mean of the speedups of all jobs
//	fair share the devices of the cluster divided by the jobs
//
// problem.go has the jobs of a decision, rows.go the speedup of rows, operators.go
// crossover, mutation and repair, nsga2.go the selection, apply.go the grants.
//
// Start with pollux.go, operators.go and rows.go.
package pollux
