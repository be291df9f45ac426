// Package rubick holds Rubick (Zhang et al., MLSys 2025), which chooses plans and resources
// by the slopes of sensitivity curves, and its ablations rubick-e, rubick-r and rubick-n.
//
//	curve   predicted speed of the best plan by device count and layout
//	slope   completions (or seconds) gained or lost per device
//	load    devices of a configuration, or what its CPUs and memory amount to in devices
//	move    a running job gives up devices, or stops, for a waiting one
//	growth  a running job gets more devices or a better plan
//	gate    condition that a change repays its start cost
//
// rubick.go has the algorithm and prepares a decision, start.go starts waiting jobs,
// shrink.go makes room for them and grows running jobs, explain.go gives reasons.
//
// Start with rubick.go, start.go and shrink.go.
package rubick
