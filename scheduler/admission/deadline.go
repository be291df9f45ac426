package admission

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/elasticflow"
)

var deadlineOptions = []policy.Option{
	{Name: "start", Default: "60", Unit: "s", Max: 1e6, Doc: "start cost of a new job; at least that of the jobs in the system"},
}

var deadlineRule = Info{
	Name:    "deadline",
	Doc:     "rejects jobs with a deadline that cannot be met beside the jobs in the system, by the plans of policy elasticflow (Gu et al., ElasticFlow, ASPLOS 2023)",
	Options: deadlineOptions,
	New: func(d policy.Deps) (scheduler.Admission, error) {
		v := d.Values(deadlineOptions)
		return deadline{elasticflow.NewShares(d), v.Duration("start")}, v.Err()
	},
}

// deadline admits a job if it can meet its deadline and no admitted job then misses its own.
// Jobs without a deadline and jobs of unknown work are always admitted.
type deadline struct {
	shares *elasticflow.Shares
	start  time.Duration
}

// Admit implements scheduler.Admission.
func (a deadline) Admit(ctx context.Context, s *scheduler.Snapshot, j spec.Job) (bool, string, error) {
	start := a.start
	for _, other := range s.Jobs() {
		start = max(start, other.StartCost)
	}
	ok, why, err := a.shares.Admits(ctx, s, &j, start)
	if err != nil || ok {
		return ok, "", err
	}
	return false, fmt.Sprintf("the deadline at %v cannot be met: %s", j.Deadline, why), nil
}
