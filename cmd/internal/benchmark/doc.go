// Package benchmark is pacer bench: the accuracy of performance models, the choices of the planner, and scheduling
// policies on generated workloads. The work is done by packages below bench.
//
// Start with command.go; accuracy.go, planner.go and scheduling.go have a subcommand each.
package benchmark
