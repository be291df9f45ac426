// Package online has an oracle that learns during a run. It first fits performance models to profiled measurements, and
// refits them to observed step times of jobs.
//
// A key is a model on an accelerator; each has a performance model of its own. An observation is the step time of a
// job in a configuration.
//
// Start with oracle.go; example_test.go shows its use. scheduler/sim/observation.go makes the observations.
package online
