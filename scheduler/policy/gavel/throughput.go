package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Throughput maximises the sum of normalised throughputs.
var Throughput = policy.Info{
	Name:    "gavel-throughput",
	Doc:     "maximises the sum of normalised throughputs; spare devices go to jobs without any",
	Options: solving,
	New:     func(d policy.Deps) (scheduler.Policy, error) { return solved(d, Objective{}, maxTotal) },
}

// maxTotal maximises the sum of levels. Gavel adds steps/s, which favours jobs with
// short steps.
func maxTotal(ctx context.Context, s *Shares) error {
	p := s.program()
	p.addLevels(1)
	_, err := p.solve(ctx)
	return err
}
