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

// byPrices makes the least throughput as great as it can be, each times a factor;
// jobs with factor 0 get nothing, and nobody shares devices. No group is twice
// among the ways of a job alone. Jobs of one menu and factor are one to the solver,
// as large as all of them.
func (s *Shares) byPrices(ctx context.Context, factor func(i int) float64) error {
	types := len(s.Devices)
	rates := make([]float64, 0, len(s.Jobs)*types)
	p := &lp.MaxMin{Capacity: s.Devices, Rates: make([][]float64, 0, len(s.Jobs)), Sizes: make([]float64, 0, len(s.Jobs))}
	row := make([]int, len(s.Jobs)) // of each job, -1 = none
	for i := range s.Jobs {
		j := &s.Jobs[i]
		clear(j.X)
		f := 0.0
		if len(j.Ways) > 0 {
			f = factor(i)
		}
		if row[i] = -1; f == 0 {
			continue
		}
		if m := j.menu; m != nil && m.priced.in == p && m.priced.factor == f {
			row[i] = m.priced.row
			p.Sizes[row[i]] += j.Devices()
			continue
		}
		row[i] = len(p.Rates)
		if j.menu != nil {
			j.menu.priced = priced{p, f, row[i]}
		}
		rates = rates[:len(rates)+types]
		r := rates[len(rates)-types:]
		for _, w := range j.Ways {
			if w.Beside == 0 {
				r[w.Group] = f * w.Rate
			}
		}
		p.Rates, p.Sizes = append(p.Rates, r), append(p.Sizes, j.Devices())
	}
	sol, err := p.Solve(ctx)
	if err != nil {
		return err
	}
	for i, at := range row {
		if at < 0 {
			continue
		}
		for k, w := range s.Jobs[i].Ways {
			if w.Beside == 0 {
				s.Jobs[i].X[k] = min(max(sol.X[at][w.Group], 0), 1)
			}
		}
	}
	return nil
}

// priced is what became of a menu in byPrices: in which problem it was last, the last
// factor it had there, and its row.
type priced struct {
	in     *lp.MaxMin
	factor float64
	row    int
}
