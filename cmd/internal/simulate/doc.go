// Package simulate is the commands about simulations: pacer simulate, sweep, learn and report.
//
// Start with command.go (simulate) and print.go (its output), then sweep.go and learn.go. What is
// simulated is assembled by cmd/experiment.
package simulate
