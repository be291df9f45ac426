// Command awareness measures how much earlier jobs are done when it is known how
// fast they are on every type of devices (Narayanan et al., Gavel, OSDI 2020,
// figures 8 and 9): gavel-las beside gavel-las:agnostic over load, in the semantics
// of the published simulator, in which nothing else knows speeds, and in Pacer's.
//
//	go run ./bench/awareness -shared SHARED -figure docs/benchmarks
//
// Jobs are generated as there, on 36 devices of each of three types, other ones for
// every seed; those numbered 1000 to 1499 are scored while others go on arriving.
// Load is devices asked for per hour, so that workloads of wide jobs have fewer.
//
// Start with main.go; run.go is one simulation.
package main
