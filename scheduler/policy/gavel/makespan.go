package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var Makespan = policy.Info{
	Name:    "gavel-makespan",
	Doc:     "minimises the time at which all jobs are done, by one linear program (Narayanan et al., Gavel, OSDI 2020, section 4.2)",
	Options: solving,
	New:     func(d policy.Deps) (scheduler.Policy, error) { return solved(d, Objective{}, earliest) },
}

// earliest makes the part of what is left that every job makes per second, u, as
// great as it can be: all are then done after 1/u. The paper searches for the
// time by halving.
func earliest(ctx context.Context, s *Shares) error {
	_, err := s.makespan(ctx)
	return err
}

// makespan fills in the fractions with which all jobs are done earliest, and
// returns how many seconds from now that is.
func (s *Shares) makespan(ctx context.Context) (float64, error) {
	alone := 0.0 // s, until the longest job would be done if it had all it could use
	for i := range s.Jobs {
		if j := &s.Jobs[i]; len(j.Ways) > 0 {
			alone = max(alone, j.State.Remaining/j.fastest())
		}
	}
	if alone == 0 {
		return 0, nil
	}
	p := s.program()
	pace := p.Var("parts in the time of the longest job", -lp.Inf, 2, 1)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; len(j.Ways) > 0 {
			left := max(j.State.Remaining, leastNeed*j.fastest()*alone)
			p.AtLeast("", 0, append(p.throughput(i, alone/left), lp.Term{Var: pace, Coef: -1})...)
		}
	}
	p.prefer()
	sol, err := p.solve(ctx)
	if err != nil {
		return 0, err
	}
	return alone / sol.Value(pace), nil
}

// leastNeed is the least throughput that a job is taken to need, as a part of
// the fastest it could have, so that coefficients stay near 1.
const leastNeed = 1e-5

// EarliestEnd returns the least number of seconds from now in which all jobs of s
// could be done at the believed speeds, if devices could be shared to any
// fraction: a bound no schedule beats. Jobs that run nowhere are left out.
func EarliestEnd(ctx context.Context, d policy.Deps, s *scheduler.Snapshot) (float64, error) {
	shares, err := newCandidates(d, false).sharesOf(ctx, s, make([]*account, len(s.Jobs())))
	if err != nil {
		return 0, err
	}
	shares.anyOptimum = true
	return shares.makespan(ctx)
}
