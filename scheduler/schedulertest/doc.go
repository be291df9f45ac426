// Package schedulertest tests schedulers: an invented world for them to run in
// (world.go), a suite that every policy must pass (conformance.go), a count of
// what a run's result must be, from its events alone (recount.go), and a scenario
// language for transcripts (scenario.go).
package schedulertest
