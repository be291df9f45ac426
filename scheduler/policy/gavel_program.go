package policy

import (
	"context"

	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

// program is a linear programme over the fractions of s, which lie within what
// there is: of each group no more than its devices, of each job's time no more
// than all of it (Narayanan et al., Gavel, OSDI 2020, section 3.1).
type program struct {
	*lp.Problem
	s *Shares
	x [][]lp.Var // by job and way
}

// program returns one that maximises nothing yet.
func (s *Shares) program() *program {
	p := &program{Problem: lp.New(lp.Maximize), s: s, x: make([][]lp.Var, len(s.Jobs))}
	used := make([][]lp.Term, len(s.Devices))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		time := make([]lp.Term, len(j.Ways))
		p.x[i] = make([]lp.Var, len(j.Ways))
		for k, w := range j.Ways {
			x := p.Var("", 0, lp.Inf, 0)
			p.x[i][k], time[k] = x, lp.Term{Var: x, Coef: 1}
			used[w.Group] = append(used[w.Group], lp.Term{Var: x, Coef: float64(w.Devices)})
		}
		p.AtMost("", 1, time...)
	}
	for g, terms := range used {
		p.AtMost("", s.Devices[g], terms...)
	}
	return p
}

// throughput returns the terms of the throughput of job i times a factor.
func (p *program) throughput(i int, factor float64) []lp.Term {
	out := make([]lp.Term, len(p.x[i]))
	for k, x := range p.x[i] {
		out[k] = lp.Term{Var: x, Coef: factor * p.s.Jobs[i].Ways[k].Rate}
	}
	return out
}

// solve fills in the fractions of the optimum.
func (p *program) solve(ctx context.Context) (*lp.Solution, error) {
	sol, err := p.Solve(ctx, lp.Options{})
	if err != nil {
		return nil, err
	}
	for i := range p.x {
		for k, x := range p.x[i] {
			p.s.Jobs[i].X[k] = min(max(sol.Value(x), 0), 1)
		}
	}
	return sol, nil
}

// settle takes one of the optima where v, the whole objective, has the value it
// has in sol: that of the greatest sum of levels, or the one there is if any will
// do.
func (p *program) settle(ctx context.Context, sol *lp.Solution, v lp.Var) error {
	if p.s.anyOptimum {
		return nil
	}
	p.SetBounds(v, sol.Value(v)*(1-1e-7), lp.Inf)
	p.SetCost(v, 0)
	p.total()
	_, err := p.solve(ctx)
	return err
}

// total makes the sum of levels the objective.
func (p *program) total() {
	for i := range p.x {
		j := &p.s.Jobs[i]
		for k, x := range p.x[i] {
			p.SetCost(x, p.s.level(j)*j.Ways[k].Rate)
		}
	}
}
