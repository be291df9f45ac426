// Package schedule is the commands pacer schedule, pacer run and pacer advise: a real cluster driven by a policy, the start
// of a job with the plan that was chosen, and advice on submissions without control.
//
// Start with schedule.go, then estimates.go (the models that the policy asks), run.go and advise.go. The controller is
// scheduler/live. The tag nokubernetes leaves out kubernetes.go and advise_kubectl.go.
package schedule
