package order

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
)

// FIFO is the registry entry of policy fifo.
var FIFO = policy.Info{
	Name:    "fifo",
	Doc:     "first come, first served at the job's own plan and size, or with the fastest numbers of replicas and parameter servers that fit; a job that does not fit blocks all jobs behind it",
	Servers: policy.ServesToo,
	New:     newFIFO,
}

// FIFOBackfill is the registry entry of policy fifo-backfill.
var FIFOBackfill = policy.Info{
	Name: "fifo-backfill",
	Doc:  "submission order at the job's own plan and size; every job that fits starts, without reservations",
	New:  func(d policy.Deps) (scheduler.Policy, error) { return ArrivalOrder(d, true), nil },
}

func newFIFO(d policy.Deps) (scheduler.Policy, error) {
	if d.Servers != nil {
		return paramserver.NewFIFO(d), nil
	}
	if policy.VariantOf[Variant](d).UrgentAfter > 0 { // urgent jobs preempt
		return newPreemptive(d, Ranking{Key: bySubmission, Steady: true}, false)
	}
	return ArrivalOrder(d, false), nil
}

func bySubmission(_ context.Context, _ *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	return j.Job.Submit.Seconds(), nil
}
