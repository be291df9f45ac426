package gavel

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// SLO is the registry entry of policy gavel-slo.
var SLO = policy.Info{
	Name:    "gavel-slo",
	Doc:     "maximises the sum of normalised throughputs subject to deadlines; warns of deadlines it cannot meet (Narayanan et al., Gavel, OSDI 2020, section 4.2)",
	Options: solving,
	New:     func(d policy.Deps) (scheduler.Policy, error) { return solved(d, Objective{}, keepDeadlines) },
}

func keepDeadlines(ctx context.Context, s *Shares) error {
	need, err := s.deadlines(ctx)
	if err != nil {
		return err
	}
	p := s.program()
	for i := range s.Jobs {
		if need[i] > 0 {
			p.AtLeast("", 1-2*coarse, p.throughput(i, 1/need[i])...)
		}
	}
	p.addLevels(1)
	_, err = p.solve(ctx)
	return err
}

// deadlines returns the throughput that every job needs to meet its deadline, 0 for jobs
// without one. If the deadlines cannot all be met it repeatedly drops that of the job
// which lacks the largest part of its need, with a warning. Gavel's code drops all of them.
func (s *Shares) deadlines(ctx context.Context) ([]float64, error) {
	need := make([]float64, len(s.Jobs))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		deadline := j.State.Job.Deadline
		if deadline == 0 || len(j.Candidates) == 0 || j.State.Remaining <= 0 {
			continue
		}
		if left := (deadline - s.Now).Seconds(); left*j.fastest() < j.State.Remaining {
			s.giveUp(j)
		} else {
			need[i] = max(j.State.Remaining/left, leastNeed*j.fastest())
		}
	}
	for {
		worst, short, err := s.mostLacking(ctx, need)
		if err != nil || worst < 0 {
			return need, err
		}
		if short < 1e-6 {
			return need, nil
		}
		s.giveUp(&s.Jobs[worst])
		need[worst] = 0
	}
}

func (s *Shares) giveUp(j *Share) {
	s.Warnings = append(s.Warnings, fmt.Sprintf("job %s cannot meet its deadline at %v", j.State.Job.ID, j.State.Job.Deadline))
}

// mostLacking minimises the sum over jobs of the missing part of their need. It returns
// the job with the largest missing part; -1 if no job has a need.
func (s *Shares) mostLacking(ctx context.Context, need []float64) (worst int, short float64, err error) {
	p := s.program()
	worst = -1
	lack := make([]lp.Var, len(need))
	for i := range need {
		if need[i] > 0 {
			worst = i
			lack[i] = p.Var("", 0, lp.Inf, -1)
			p.AtLeast("", 1, append(p.throughput(i, 1/need[i]), lp.Term{Var: lack[i], Coef: 1})...)
		}
	}
	if worst < 0 {
		return worst, 0, nil
	}
	sol, err := p.optimum(ctx)
	if errors.Is(err, lp.ErrInfeasible) {
		return worst, 0, fmt.Errorf("policy: deadlines: %w", err)
	}
	if err != nil {
		return worst, 0, err
	}
	for i := range need {
		if need[i] > 0 && sol.Value(lack[i]) >= short {
			worst, short = i, sol.Value(lack[i])
		}
	}
	return worst, short, nil
}
