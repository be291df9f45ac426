// Command awareness measures how much a policy gains from knowing the speed of jobs
// on every type of device (Narayanan et al., Gavel, OSDI 2020, figures 8 and 9). It
// compares gavel-las with gavel-las:agnostic over load, in the semantics of the
// published simulator and in Pacer's.
//
//	go run ./bench/awareness -shared SHARED -figure docs/benchmarks
//
// Each seed has its own jobs, drawn as in the published simulator, on 36 devices of
// each of three types. Jobs 1000 to 1499 are scored; jobs go on arriving after them.
// Load is in requested devices per hour, so workloads of wide jobs have fewer jobs.
//
// Start with main.go; run.go is one simulation.
package main
