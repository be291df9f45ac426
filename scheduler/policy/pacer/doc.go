// Package pacer holds the policy of Pacer: rolling-horizon scheduling. At every event it
// computes a schedule of all jobs into the future (scheduler/internal/lookahead) and
// applies the part that is due now. docs/design/joint-scheduling.md states the problem.
//
//	schedule       starts of all jobs: configuration, devices and time
//	task           a job in the scheduling problem
//	deadline       end of a guaranteed job in a reference run
//	reference run  the same jobs under fifo-backfill, as submitted
//	case           a reference run with other speeds drawn from their intervals
//	guess          assume as many remaining steps as were done (option steps=unknown)
//
// prepare.go states the problem, decide.go makes grants, search.go keeps the last schedule
// as a warm start. deadlines.go and reference.go compute deadlines. elastic.go is the
// policy for jobs that choose their batch; it does not schedule ahead.
//
// Start with pacer.go, deadlines.go and elastic.go.
package pacer
