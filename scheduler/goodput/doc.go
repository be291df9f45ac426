// Package goodput simulates jobs by the tables that Pollux and Sia published. It has
// a truth for simulations, oracles for policies, and the plans that jobs can use.
//
// Terms:
//
//   - Goodput is throughput times statistical efficiency, here in steps at the initial
//     batch per second.
//   - The gain of a step is the number of steps at the initial batch that make the same
//     progress.
//   - An epoch is statistical: it ends at the same progress for every batch.
//   - Local samples are those of one device in one micro-batch.
//   - An agent is a job that estimates its own speed from its steps, as in Sia, and
//     chooses its batch by that.
//
// Start with tables.go, the tables of an application; truth.go, the progress of a job;
// plan.go, the split of a global batch over devices; and tune.go, the best batch.
// oracle.go has the estimates for policies, space.go the plans to choose from, and
// agents.go the agents. read.go finds and reads the files, speed.go looks up step times,
// grid.go and tetrahedra.go interpolate between measured placements.
//
// Source: Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for
// Goodput-Optimized Deep Learning", OSDI 2021, sections 2.2 and 3.1; the gain of
// a step is that of Johnson et al., "AdaScale SGD", ICML 2020.
package goodput
