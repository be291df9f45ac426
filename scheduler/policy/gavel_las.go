package policy

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

func init() {
	register(Info{
		Name:    "gavel-las",
		Doc:     "least attained service where types of devices differ: the least normalised throughput as great as can be, by weight (Narayanan et al., Gavel, OSDI 2020, section 4.1)",
		Options: solving,
		New:     func(d Deps) (scheduler.Policy, error) { return solved(d, Objective{}, maxMin) },
	})
}

// maxMin makes the least level as great as it can be.
func maxMin(ctx context.Context, s *Shares) error {
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
