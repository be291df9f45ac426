package order

import (
	"cmp"
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Priority is the registry entry of policy priority.
var Priority = policy.Info{
	Name:    "priority",
	Doc:     "highest weight first; weight grows with time since submission, so no job starves; preempts",
	Options: priorityOptions,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		v := d.Values(priorityOptions)
		perHour := v.Float("aging")
		if err := v.Err(); err != nil {
			return nil, err
		}
		return Preemptive(d, Ranking{Key: aged(perHour), Steady: true})
	},
}

var priorityOptions = append([]policy.Option{
	{Name: "aging", Default: "0.1", Unit: "1/h", Max: 1e6, Doc: "weight gained per hour since submission"},
}, preemption...)

// aged is the key for the order by weight + perHour * hours since submission, highest
// first. All jobs age equally, so the order of two jobs never changes, and the key is
// perHour * submission - weight.
func aged(perHour float64) func(context.Context, *scheduler.Snapshot, *scheduler.JobState) (float64, error) {
	return func(_ context.Context, _ *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
		return perHour*j.Job.Submit.Hours() - cmp.Or(j.Job.Weight, 1), nil
	}
}
