// Package sim runs a scheduling policy over a workload on a simulated cluster.
//
// Start with config.go (the input of a run), engine.go (the event loop) and target.go
// (how a decision is checked and applied). truth.go has the true speeds of jobs,
// rules.go the parts in which simulators differ, progress.go the progress of a job.
//
// The engine is a discrete-event simulation: time jumps from one arrival, completion
// or wake-up to the next. Progress between them is computed, not stepped, through
// stages of different speed, slow spells of nodes and checkpoints. At one instant the
// engine processes completions, failures and repairs, arrivals and wake-ups, in this
// order, and then calls the policy once. It compares the decision with the present,
// stops what is no longer granted, and charges a start cost to every job that starts,
// resumes, or changes plan, shape or nodes. While a job pays it, it holds its devices
// and makes no progress. Its progress is kept, except for what a failure undoes.
//
// Every change is checked against the free devices (scheduler.Ledger). A device
// granted twice, more devices than a node has, a plan for other devices, or a grant to
// an unknown job end the run with an error that names policy, time, job and node.
// Config.Audit recounts everything after every decision.
//
// Truth and belief are separate: only the engine has the Truth. The belief of a policy
// is the scheduler.Oracle that it was made with.
package sim
