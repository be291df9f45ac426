package policy

import (
	"cmp"
	"context"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name: "priority",
		Doc:  "largest weight first, which grows with the time since submission so that nobody starves; preempts",
		Options: append([]Option{
			{Name: "aging", Default: "0.1", Doc: "weight gained per hour since submission"},
		}, preemption...),
		New: func(d Deps) (scheduler.Policy, error) {
			perHour, err := d.number("aging", 0.1, 0, 1e6)
			if err != nil {
				return nil, err
			}
			return Preemptive(d, Ranking{Key: aged(perHour), Steady: true})
		},
	})
}

// aged orders jobs by weight + perHour * hours since submission, most first. All
// age alike, so the order of two jobs never changes: it is that of
// perHour * submission - weight, and nobody needs to be asked again.
func aged(perHour float64) func(context.Context, *scheduler.Snapshot, *scheduler.JobState) (float64, error) {
	return func(_ context.Context, _ *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
		return perHour*j.Job.Submit.Hours() - cmp.Or(j.Job.Weight, 1), nil
	}
}
