// Package online provides a belief that learns during a run. It fits performance models to a few profiled points
// first, and refits them to measured step times of the jobs.
//
// Read oracle.go, oracle_test.go and scheduler/sim/observation.go (the source of step times) first.
package online
