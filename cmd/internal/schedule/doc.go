// Package schedule is the commands pacer schedule and pacer run: a real cluster driven by a
// policy, and the start of a job with the plan that was chosen.
//
// Start with schedule.go, then estimates.go (the models that the policy asks) and run.go. The
// controller is scheduler/live. The tag nokubernetes leaves out kubernetes.go.
package schedule
