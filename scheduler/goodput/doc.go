// Package goodput knows how fast jobs train in the sense of Pollux: steps a
// second times what a step teaches. It reads the tables that Pollux and Sia
// published and is a truth of simulations, the belief that agrees with it, and
// the plans there are to choose from.
//
// Start with tables.go (what is known of an application), truth.go (how a job
// gets on), plan.go (how a global batch is split over devices) and tune.go (which
// one is worth most). oracle.go is what a policy may believe, read.go finds and
// reads the files, speed.go looks step times up, grid.go and tetrahedra.go
// interpolate between placements that were measured. agents.go is jobs that know of
// themselves what they have seen alone, and choose their batch by that.
//
// Source: Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for
// Goodput-Optimized Deep Learning", OSDI 2021, sections 2.2 and 3.1; the gain of
// a step is that of Johnson et al., "AdaScale SGD", ICML 2020.
package goodput
