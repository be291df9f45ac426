package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Throughput maximises the sum of normalised throughputs.
var Throughput = policy.Info{
	Name:    "gavel-throughput",
	Doc:     "maximises the sum of throughputs, each as a multiple of the job's on an even share of types; devices that are left go to jobs without any",
	Options: solving,
	New:     func(d policy.Deps) (scheduler.Policy, error) { return solved(d, Objective{}, greatestTotal) },
}

// greatestTotal maximises the sum of levels. Gavel adds steps/s, which favours jobs with
// short steps.
func greatestTotal(ctx context.Context, s *Shares) error {
	p := s.program()
	p.total(1)
	_, err := p.solve(ctx)
	return err
}
