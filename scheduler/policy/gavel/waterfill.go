package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var Waterfill = policy.Info{
	Name:    "gavel-las-waterfill",
	Doc:     "as gavel-las; when the least throughput cannot grow, the next one is maximised, and so on (Narayanan et al., Gavel, OSDI 2020, section 4.3)",
	Options: solving,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		return solved(d, Objective{}, func(ctx context.Context, s *Shares) error { return s.waterfill(ctx, s.weights) })
	},
}

// weights are those of the owners.
func (s *Shares) weights(full []bool) []float64 {
	out := make([]float64, len(s.Jobs))
	for i := range s.Jobs {
		if !full[i] {
			out[i] = s.Jobs[i].Weight()
		}
	}
	return out
}

// waterfill lets the throughput of all jobs grow in proportion to their weights,
// counted in multiples of that on an even share and by their devices, until some
// cannot grow any more: these are full and keep what they have, and the others
// grow on. weights returns what each job grows by given the full jobs, 0 for these;
// others of weight 0 keep what they have for now.
//
// The duals of the program show which jobs are full: the interior-point method ends
// in the middle of the optima, where a dual is above 0 exactly if the job is full
// in all of them (Goldman and Tucker, 1956). The paper asks a mixed-integer
// programme.
func (s *Shares) waterfill(ctx context.Context, weights func(full []bool) []float64) error {
	level := make([]float64, len(s.Jobs))
	full := make([]bool, len(s.Jobs))
	open := 0
	for i := range s.Jobs {
		if full[i] = len(s.Jobs[i].Ways) == 0; !full[i] {
			open++
		}
	}
	for open > 0 {
		w := weights(full)
		p, grown := s.rise(level, w)
		sol, err := p.solve(ctx)
		if err != nil {
			return err
		}
		filled := 0
		for i := range s.Jobs {
			if full[i] || w[i] == 0 {
				continue
			}
			level[i] += sol.Value(p.growth) * w[i]
			if -sol.Dual(grown[i])*w[i] > leastDual/float64(len(s.Jobs)) {
				full[i] = true
				filled++
			}
		}
		if filled == 0 {
			break // the solver cannot tell which jobs are full
		}
		open -= filled
	}
	p, _ := s.rise(level, make([]float64, len(level))) // what rounding has left
	p.SetBounds(p.growth, 0, 0)
	p.total(1)
	_, err := p.solve(ctx)
	return err
}

// leastDual tells duals from zeros, in parts of their mean: those of the jobs that
// grow add up to 1.
const leastDual = 1e-2

// rising is a programme that makes levels grow.
type rising struct {
	*program
	growth lp.Var
}

// rise returns the programme that lets levels grow by weights, and the row of each
// job.
func (s *Shares) rise(level, weight []float64) (rising, []lp.Row) {
	p := rising{program: s.program()}
	p.growth = p.Var("growth", -lp.Inf, lp.Inf, 1)
	rows := make([]lp.Row, len(s.Jobs))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if len(j.Ways) == 0 {
			continue
		}
		terms := p.throughput(i, s.level(j)*j.Weight())
		if weight[i] > 0 {
			terms = append(terms, lp.Term{Var: p.growth, Coef: -weight[i]})
		}
		rows[i] = p.AtLeast("", level[i]*(1-1e-7), terms...)
	}
	return p, rows
}
