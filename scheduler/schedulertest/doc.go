// Package schedulertest tests schedulers: an invented world for them to run in
// (world.go), a suite that every policy must pass (conformance.go), and a
// scenario language for transcripts (scenario.go).
package schedulertest
