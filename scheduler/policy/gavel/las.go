package gavel

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var LAS = policy.Info{
	Name:    "gavel-las",
	Doc:     "least attained service for several types of devices: maximises the least normalised throughput, by weight (Narayanan et al., Gavel, OSDI 2020, section 4.1)",
	Options: lasOptions,
	New:     newGavelLAS,
}

var lasOptions = append([]policy.Option{
	{Name: "total", Default: "false", Doc: "choose among equal optima the one with the highest total throughput, by a slower program; else leases assign what is left"},
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

// maxMinProgram makes the least level as great as it can be, and gives away what
// is left. It is for groups with several sizes, and for types that are alike, where it
// matters which job is on which.
func (s *Shares) maxMinProgram(ctx context.Context) error {
	p := s.program()
	least := p.Var("least level", -lp.Inf, lp.Inf, 1)
	for i := range s.Jobs {
		if j := &s.Jobs[i]; len(j.Ways) > 0 {
			p.AtLeast("", 0, append(p.throughput(i, s.level(j)), lp.Term{Var: least, Coef: -1})...)
		}
	}
	p.prefer()
	_, err := p.solve(ctx)
	return err
}

// maxMinPrices maximises the least level, and gives no job more, by one price for each
// type of devices.
func (s *Shares) maxMinPrices(ctx context.Context) error {
	return s.byPrices(ctx, func(i int) float64 { return s.level(&s.Jobs[i]) })
}
