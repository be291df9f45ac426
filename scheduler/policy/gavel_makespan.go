package policy

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

func init() {
	register(Info{
		Name:    "gavel-makespan",
		Doc:     "all jobs done as early as can be, by one programme (Narayanan et al., Gavel, OSDI 2020, section 4.2)",
		Options: solving,
		New:     func(d Deps) (scheduler.Policy, error) { return solved(d, (*Shares).earliest) },
	})
}

// earliest makes the part of what is left that every job makes per second, u, as
// great as it can be: all are then done after 1/u. The paper searches for the
// time by halving.
func (s *Shares) earliest(ctx context.Context) error {
	_, err := s.makespan(ctx)
	return err
}

// makespan fills in the fractions with which all jobs are done earliest, and
// returns how many seconds from now that is.
func (s *Shares) makespan(ctx context.Context) (float64, error) {
	p := s.program()
	pace := p.Var("parts per day", -lp.Inf, lp.Inf, 1)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; len(j.Ways) > 0 {
			p.AtLeast("", 0, append(p.throughput(i, day/j.State.Remaining), lp.Term{Var: pace, Coef: -1})...)
		}
	}
	sol, err := p.solve(ctx)
	if err != nil {
		return 0, err
	}
	return day / sol.Value(pace), p.settle(ctx, sol, pace)
}

// day keeps coefficients near 1.
const day = 24 * 3600.0 // s
