package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Makespan is the registry entry of policy gavel-makespan.
var Makespan = policy.Info{
	Name:    "gavel-makespan",
	Doc:     "minimises the makespan by one linear program (Narayanan et al., Gavel, OSDI 2020, section 4.2)",
	Options: solving,
	New:     func(d policy.Deps) (scheduler.Policy, error) { return solved(d, Objective{}, minMakespan) },
}

// minMakespan maximises u, the fraction of its remaining steps that every job completes
// per second; all jobs are done after 1/u seconds. The paper bisects over the makespan.
func minMakespan(ctx context.Context, s *Shares) error {
	_, err := s.makespan(ctx)
	return err
}

// makespan fills in the fractions with the minimal makespan, and returns that makespan in
// seconds from now.
func (s *Shares) makespan(ctx context.Context) (float64, error) {
	alone := 0.0 // remaining seconds of the longest job at its highest throughput
	for i := range s.Jobs {
		if j := &s.Jobs[i]; len(j.Candidates) > 0 {
			alone = max(alone, j.State.Remaining/j.fastest())
		}
	}
	if alone == 0 {
		return 0, nil
	}
	p := s.program()
	pace := p.Var("progress per time of the longest job", -lp.Inf, 2, 1)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; len(j.Candidates) > 0 {
			left := max(j.State.Remaining, leastNeed*j.fastest()*alone)
			p.AtLeast("", 0, append(p.throughput(i, alone/left), lp.Term{Var: pace, Coef: -1})...)
		}
	}
	p.breakTies()
	sol, err := p.solve(ctx)
	if err != nil {
		return 0, err
	}
	return alone / sol.Value(pace), nil
}

// leastNeed is a lower bound on the throughput that a job needs, as a fraction of its
// highest throughput. It keeps the coefficients of the program near 1.
const leastNeed = 1e-5

// EarliestEnd returns a lower bound on the makespan of the jobs of s, in seconds from now:
// the makespan at predicted speeds if devices could be divided into any fractions. Jobs
// that run nowhere are left out.
func EarliestEnd(ctx context.Context, d policy.Deps, s *scheduler.Snapshot) (float64, error) {
	shares, err := newCandidates(d, false).sharesOf(ctx, s, make([]*account, len(s.Jobs())))
	if err != nil {
		return 0, err
	}
	shares.anyOptimum = true
	return shares.makespan(ctx)
}
