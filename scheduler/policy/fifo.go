package policy

import (
	"cmp"
	"context"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name:    "fifo",
		Doc:     "first come, first served at the job's own plan and size, with parameter servers at the fastest numbers there is room for; who does not fit holds up all behind",
		Servers: ServesToo,
		New:     newFIFO,
	})
	register(Info{
		Name: "fifo-backfill",
		Doc:  "submission order at the job's own plan and size; whatever fits starts, without reservations",
		New:  func(d Deps) (scheduler.Policy, error) { return Ordered(d, true), nil },
	})
}

func newFIFO(d Deps) (scheduler.Policy, error) {
	if d.Servers != nil {
		return newServedFIFO(d), nil
	}
	if d.Quirks.Urgent { // the urgent preempt even here
		d.Options = map[string]string{"backfill": "false"}
		return Preemptive(d, Ranking{Key: bySubmission, Steady: true})
	}
	return Ordered(d, false), nil
}

func bySubmission(_ context.Context, _ *scheduler.Snapshot, j *scheduler.JobState) (float64, error) {
	return j.Job.Submit.Seconds(), nil
}

// byArrival orders jobs by submission; ties go to the lower ID.
func byArrival(a, b *scheduler.JobState) int {
	return cmp.Or(cmp.Compare(a.Job.Submit, b.Job.Submit), cmp.Compare(a.Job.ID, b.Job.ID))
}
