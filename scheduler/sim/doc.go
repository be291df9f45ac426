// Package sim runs a scheduling policy over a workload on a simulated cluster.
//
// Start with config.go (what a run is given), engine.go (the event loop),
// target.go (how a decision is checked and carried out) and truth.go (how fast
// jobs really run). cost.go is what starts cost, failure.go how nodes go down,
// speed.go how they differ, sharing.go how two jobs share devices, and course.go
// how a job gets on through all that. fluid.go is a run of fractions of time.
// result.go is what comes out, resume.go how a run goes on from a state somebody
// knows.
//
// The engine is a discrete-event simulation: time jumps from one arrival,
// completion or wake-up to the next, and progress between them is computed, not
// stepped: course.go follows a job through stages of its work that run at
// different speeds, slow spells of nodes and checkpoints. Everything that happens
// at one instant is carried out, in the order completions, failures and repairs,
// arrivals, wake-ups, before the policy is asked once. The policy answers with the
// target or with what is to change; the engine compares it with the present, stops
// what is no longer granted, and charges the start cost of every job that starts,
// resumes, or changes plan, shape or nodes. During its start cost a job holds its
// devices and makes no progress; what it did before is kept, but for what a
// failure undoes.
//
// Every change is checked against what is free (scheduler.Ledger): a device
// granted twice, more devices than a node has, a plan that is not for the
// devices granted, or a grant to a job that is not there end the run with an
// error naming policy, time, job and node. With Config.Audit everything is
// moreover recounted from nothing after every decision.
//
// Truth and belief are separate: the engine alone holds the Truth, a policy
// knows only the scheduler.Oracle it was made with.
package sim
