package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// LAS is the registry entry of policy gavel-las.
var LAS = policy.Info{
	Name:    "gavel-las",
	Doc:     "max-min fairness, Gavel's LAS: maximises the lowest normalised, weighted throughput (Narayanan et al., Gavel, OSDI 2020, section 4.1)",
	Options: lasOptions,
	New:     newGavelLAS,
}

var lasOptions = append([]policy.Option{
	{Name: "total", Default: "false", Doc: "among equal optima choose the one with the highest total throughput, by a slower program; false: leases assign the spare devices"},
}, solving...)

func newGavelLAS(d policy.Deps) (scheduler.Policy, error) {
	v := d.Values(lasOptions)
	total := v.Bool("total")
	if err := v.Err(); err != nil {
		return nil, err
	}
	return solved(d, Objective{}, func(ctx context.Context, s *Shares) error {
		if total || s.anyOptimum || s.agnostic || s.plans || s.sharing {
			return s.maxMinProgram(ctx)
		}
		return s.maxMinPrices(ctx)
	})
}

// maxMinProgram maximises the lowest level by a linear program, and the sum of levels
// among the optima. Unlike maxMinPrices it supports several device counts per group and
// identical types, where the tie-break decides which job runs on which.
func (s *Shares) maxMinProgram(ctx context.Context) error {
	p := s.program()
	least := p.Var("least level", -lp.Inf, lp.Inf, 1)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; len(j.Candidates) > 0 {
			p.AtLeast("", 0, append(p.throughput(i, s.level(j)), lp.Term{Var: least, Coef: -1})...)
		}
	}
	p.breakTies()
	_, err := p.solve(ctx)
	return err
}

// maxMinPrices maximises the lowest level by finding a price for each type of devices. No
// job gets more than the lowest level.
func (s *Shares) maxMinPrices(ctx context.Context) error {
	return s.byPrices(ctx, func(i int) float64 { return s.level(&s.Jobs[i]) })
}
