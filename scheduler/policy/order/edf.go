package order

import (
	"context"
	"math"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// EDF is the registry entry of policy edf.
var EDF = policy.Info{
	Name:    "edf",
	Doc:     "earliest deadline first, jobs without one last; preempts",
	Options: preemption,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		return Preemptive(d, Ranking{Key: byDeadline, Steady: true})
	},
}

// byDeadline is the deadline in seconds; jobs without one come last.
func byDeadline(_ context.Context, _ *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	if j.Job.Deadline == 0 {
		return math.Inf(1), nil
	}
	return j.Job.Deadline.Seconds(), nil
}
