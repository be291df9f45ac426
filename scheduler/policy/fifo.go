package policy

import (
	"cmp"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name: "fifo",
		Doc:  "first come, first served at the job's own plan and size; who does not fit holds up all behind",
		New:  func(d Deps) (scheduler.Policy, error) { return Ordered(d, byArrival, false), nil },
	})
	register(Info{
		Name: "fifo-backfill",
		Doc:  "submission order at the job's own plan and size; whatever fits starts, without reservations",
		New:  func(d Deps) (scheduler.Policy, error) { return Ordered(d, byArrival, true), nil },
	})
}

// byArrival orders jobs by submission; ties go to the lower ID.
func byArrival(a, b *scheduler.JobState) int {
	return cmp.Or(cmp.Compare(a.Job.Submit, b.Job.Submit), cmp.Compare(a.Job.ID, b.Job.ID))
}
