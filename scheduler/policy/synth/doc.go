// Package synth holds the automatic composition of Blox (Agarwal et al., EuroSys 2024):
// it simulates combinations of policy, admission rule and placement, and uses the best.
//
// Start with synth.go and rollout.go.
package synth
