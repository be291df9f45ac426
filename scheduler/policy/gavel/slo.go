package gavel

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var SLO = policy.Info{
	Name:    "gavel-slo",
	Doc:     "keeps deadlines, warns of those it cannot keep, and maximises the sum of throughputs otherwise (Narayanan et al., Gavel, OSDI 2020, section 4.2)",
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
	p.total(1)
	_, err = p.solve(ctx)
	return err
}

// deadlines returns the throughput that every job needs to keep its deadline, 0
// of those without one or with one that cannot be kept, which a warning names.
// Where not all can be kept together, the one that is furthest from it is given
// up, and so on. Gavel's code gives up all of them.
func (s *Shares) deadlines(ctx context.Context) ([]float64, error) {
	need := make([]float64, len(s.Jobs))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		deadline := j.State.Job.Deadline
		if deadline == 0 || len(j.Ways) == 0 || j.State.Remaining <= 0 {
			continue
		}
		if left := (deadline - s.Now).Seconds(); left*j.fastest() < j.State.Remaining {
			s.giveUp(j)
		} else {
			need[i] = max(j.State.Remaining/left, leastNeed*j.fastest())
		}
	}
	for {
		worst, short, err := s.furthest(ctx, need)
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
	s.Warnings = append(s.Warnings, fmt.Sprintf("job %s cannot be done by its deadline at %v", j.State.Job.ID, j.State.Job.Deadline))
}

// furthest returns the job that lacks the largest part of its need when the sum of what
// is lacking is least; -1 if no job needs anything.
func (s *Shares) furthest(ctx context.Context, need []float64) (worst int, short float64, err error) {
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
