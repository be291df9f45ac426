package gavel

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

// program is a linear programme over the fractions of s, which lie within what
// there is: of each group no more than its devices, of each job's time no more
// than all of it (Narayanan et al., Gavel, OSDI 2020, section 3.1).
type program struct {
	*lp.Problem
	s     *Shares
	x     [][]lp.Var // by job and way
	scale lp.Var     // how many times over there is what there is, of a scaled one
	pairs []pairing  // kinds of jobs that may share devices
}

// program returns one that maximises nothing yet.
func (s *Shares) program() *program { return s.newProgram(false) }

// scaledProgram returns one in which there is scale times as much of everything,
// scale being a variable at least 0.
func (s *Shares) scaledProgram() *program { return s.newProgram(true) }

func (s *Shares) newProgram(scaled bool) *program {
	p := &program{Problem: lp.New(lp.Maximize), s: s, x: make([][]lp.Var, len(s.Jobs))}
	within := func(terms []lp.Term, most float64) { p.AtMost("", most, terms...) }
	if scaled {
		p.scale = p.Var("scale", 0, lp.Inf, 0)
		within = func(terms []lp.Term, most float64) {
			p.AtMost("", 0, append(terms, lp.Term{Var: p.scale, Coef: -most})...)
		}
	}
	used := make([][]lp.Term, len(s.Devices))
	for i := range s.Jobs {
		j := &s.Jobs[i]
		time := make([]lp.Term, len(j.Ways), len(j.Ways)+1)
		p.x[i] = make([]lp.Var, len(j.Ways))
		for k, w := range j.Ways {
			x := p.Var("", 0, lp.Inf, 0)
			p.x[i][k], time[k] = x, lp.Term{Var: x, Coef: 1}
			used[w.Group] = append(used[w.Group], lp.Term{Var: x, Coef: w.load()})
		}
		if len(time) > 0 {
			within(time, 1)
		}
	}
	for g, terms := range used {
		within(terms, s.Devices[g])
	}
	p.together()
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
	sol, err := p.optimum(ctx)
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

// optimum solves to the solver's tolerance, and where that is out of reach, as
// with jobs that must have what is there but for rounding, to coarser ones, with a
// warning.
func (p *program) optimum(ctx context.Context) (*lp.Solution, error) {
	if p.s.rules.AnyOptimum {
		return p.SolveConic(ctx)
	}
	if len(p.pairs) > 0 {
		if sol, err := p.byPairs(ctx); !errors.Is(err, lp.ErrNumerical) {
			return sol, err
		}
	}
	sol, err := p.Solve(ctx, lp.Options{})
	for tolerance := coarse; errors.Is(err, lp.ErrNumerical) && tolerance <= coarsest; tolerance *= 10 {
		if sol, err = p.Solve(ctx, lp.Options{Tolerance: tolerance}); err == nil {
			p.s.Warnings = append(p.s.Warnings, fmt.Sprintf("fractions are optimal to %g only", tolerance))
		}
	}
	return sol, err
}

// coarse is a part in a million of the time: a second of a fortnight. The coarsest
// that will do is less than the rounds leave of any fraction.
const (
	coarse   = 1e-6
	coarsest = 1e-3
)

// prefer lets the sum of levels decide among optima of an objective of one
// variable at cost 1, unless any will do. The mean level counts tieBreak: so
// little that nothing of the objective is given up for it, unless lowering all
// levels by one raised their sum by more than 1/tieBreak for each.
func (p *program) prefer() {
	if p.s.anyOptimum {
		return
	}
	p.total(tieBreak / float64(len(p.x)))
	for i, x := range p.x {
		if last := p.s.Jobs[i].Last; last >= 0 {
			j := &p.s.Jobs[i]
			p.SetCost(x[last], (1+stay)*tieBreak/float64(len(p.x))*p.s.level(j)*j.Ways[last].Rate)
		}
	}
}

const tieBreak = 1e-3

// stay is how much more a level counts on the type that a job is on.
const stay = 0.1

// total adds the sum of levels times a factor to the objective.
func (p *program) total(factor float64) {
	for i := range p.x {
		j := &p.s.Jobs[i]
		for k, x := range p.x[i] {
			p.SetCost(x, factor*p.s.level(j)*j.Ways[k].Rate)
		}
	}
}
