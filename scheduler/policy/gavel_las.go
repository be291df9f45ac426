package policy

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

func init() {
	register(Info{
		Name: "gavel-las",
		Doc:  "least attained service where types of devices differ: the least normalised throughput as great as can be, by weight (Narayanan et al., Gavel, OSDI 2020, section 4.1)",
		Options: append([]Option{
			{Name: "total", Default: "false", Doc: "of equal optima the one of greatest total throughput, by a programme that takes longer; else leases find a use for what is left"},
		}, solving...),
		New: newGavelLAS,
	})
}

func newGavelLAS(d Deps) (scheduler.Policy, error) {
	total, err := d.flag("total", false)
	if err != nil {
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
// is left: also where a group has several sizes, or where types are alike so that
// who is on which decides.
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

// maxMinPrices makes the least level as great as it can be and gives nobody more,
// by one price for each type of devices.
func (s *Shares) maxMinPrices(ctx context.Context) error {
	return s.byPrices(ctx, func(i int) float64 { return s.level(&s.Jobs[i]) })
}
