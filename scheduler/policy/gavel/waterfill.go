package gavel

import (
	"context"
	"errors"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Waterfill is the registry entry of policy gavel-las-waterfill.
var Waterfill = policy.Info{
	Name:    "gavel-las-waterfill",
	Doc:     "max-min fairness by water filling: as gavel-las; once the lowest throughput cannot grow, the next lowest is maximised, and so on (Narayanan et al., Gavel, OSDI 2020, section 4.3)",
	Options: solving,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		return solved(d, Objective{}, func(ctx context.Context, s *Shares) error { return s.waterfill(ctx, s.weights) })
	},
}

// weights returns the weight of each job that is not full, else 0.
func (s *Shares) weights(full []bool) []float64 {
	out := make([]float64, len(s.Jobs))
	for i := range s.Jobs {
		if !full[i] {
			out[i] = s.Jobs[i].Weight()
		}
	}
	return out
}

// waterfill raises the levels of all jobs in proportion to their weights until some cannot
// rise further. These are full and keep their level; the others continue to rise. weights
// returns the growth of each job given the full jobs, 0 for full jobs. Other jobs of weight
// 0 keep their level for the present iteration.
//
// The duals of the program show which jobs are full: the interior-point method ends at the
// centre of the optima, where a dual is above 0 exactly if the job is full in all optima
// (Goldman and Tucker, 1956). The paper solves a mixed-integer program instead.
func (s *Shares) waterfill(ctx context.Context, weights func(full []bool) []float64) error {
	level := make([]float64, len(s.Jobs))
	full := make([]bool, len(s.Jobs))
	open := 0
	for i := range s.Jobs {
		if full[i] = len(s.Jobs[i].Candidates) == 0; !full[i] {
			open++
		}
	}
	for open > 0 {
		w := weights(full)
		p, sol, err := s.rise(ctx, level, w)
		if err != nil {
			return err
		}
		filled := 0
		for i := range s.Jobs {
			if full[i] || w[i] == 0 {
				continue
			}
			level[i] += sol.Value(p.growth) * w[i]
			if -sol.Dual(p.rows[i])*w[i] > leastDual/float64(len(s.Jobs)) {
				full[i] = true
				filled++
			}
		}
		if filled == 0 {
			break // no dual is above the threshold
		}
		open -= filled
	}
	_, _, err := s.rise(ctx, level, nil) // assign what rounding left over
	return err
}

// leastDual is the threshold above which a dual counts as positive, relative to the mean
// dual: the duals of the growing jobs add up to 1.
const leastDual = 1e-2

// margins are the shares of its level that a job may lose to others, so that rounding does not
// make a program infeasible. What little it loses can give another thousands of times as much:
// the first that is feasible counts. Levels may be optimal to coarsest only.
var margins = []float64{1e-9, 1e-7, 1e-5, 1e-4, coarsest}

// rising is a program that raises levels.
type rising struct {
	*program
	growth lp.Var
	rows   []lp.Row // by job
}

// rise raises levels in proportion to weights as far as possible; without weights it maximises
// the sum of the levels that are kept.
func (s *Shares) rise(ctx context.Context, level, weight []float64) (p rising, sol *lp.Solution, err error) {
	for _, margin := range margins {
		p = s.rising(level, weight, margin)
		if sol, err = p.solve(ctx); !errors.Is(err, lp.ErrInfeasible) {
			break
		}
	}
	return p, sol, err
}

// rising returns the program of rise.
func (s *Shares) rising(level, weight []float64, margin float64) rising {
	p := rising{program: s.program(), rows: make([]lp.Row, len(s.Jobs))}
	p.growth = p.Var("growth", -lp.Inf, lp.Inf, 1)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if len(j.Candidates) == 0 {
			continue
		}
		terms := p.throughput(i, s.level(j)*j.Weight())
		if weight != nil && weight[i] > 0 {
			terms = append(terms, lp.Term{Var: p.growth, Coef: -weight[i]})
		}
		p.rows[i] = p.AtLeast("", level[i]*(1-margin), terms...)
	}
	if weight == nil {
		p.SetBounds(p.growth, 0, 0)
		p.addLevels(1)
	}
	return p
}
