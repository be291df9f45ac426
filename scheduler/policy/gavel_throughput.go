package policy

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
)

func init() {
	register(Info{
		Name:    "gavel-throughput",
		Doc:     "the greatest sum of throughputs, each as a multiple of the job's on an even share of types; devices that are left go to who has none",
		Options: solving,
		New:     func(d Deps) (scheduler.Policy, error) { return solved(d, Objective{}, greatestTotal) },
	})
}

// greatestTotal makes the sum of levels as great as it can be. Gavel adds steps/s,
// of which jobs with cheap steps make most.
func greatestTotal(ctx context.Context, s *Shares) error {
	p := s.program()
	p.total(1)
	_, err := p.solve(ctx)
	return err
}
