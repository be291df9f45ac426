package gavel

import (
	"context"
	"errors"
	"fmt"

	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

// program is a linear program over the fractions of s (Gavel, section 3.1): the jobs use
// at most the devices of each group, and the fractions of each job add up to at most 1.
type program struct {
	*lp.Problem
	s     *Shares
	x     [][]lp.Var // by job and candidate
	scale lp.Var     // scaledProgram only: factor of all limits
	pairs []pairing  // kinds of jobs that may share devices
}

// program returns a program without an objective.
func (s *Shares) program() *program { return s.newProgram(false) }

// scaledProgram returns a program in which the limits on devices and time are multiplied
// by the variable scale, at least 0.
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
		time := make([]lp.Term, len(j.Candidates), len(j.Candidates)+1)
		p.x[i] = make([]lp.Var, len(j.Candidates))
		for k, w := range j.Candidates {
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
	p.addMutualTime()
	return p
}

// throughput returns the terms of the throughput of job i times a factor.
func (p *program) throughput(i int, factor float64) []lp.Term {
	out := make([]lp.Term, len(p.x[i]))
	for k, x := range p.x[i] {
		out[k] = lp.Term{Var: x, Coef: factor * p.s.Jobs[i].Candidates[k].Rate}
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

// optimum solves to the solver's tolerance. If that fails numerically, as when the needs
// of jobs take all devices up to rounding, it solves to coarser tolerances with a warning.
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

// coarse is one millionth of the time: about a second in two weeks. coarsest is below the
// error that rounds make in any fraction.
const (
	coarse   = 1e-6
	coarsest = 1e-3
)

// breakTies adds tieBreak times the mean level to an objective that is one variable at
// cost 1, so that the highest sum of levels decides among its optima. Nothing is added with
// anyOptimum. tieBreak is so low that it does not change the objective unless lowering the
// variable by 1 raises the mean level by more than 1/tieBreak.
func (p *program) breakTies() {
	if p.s.anyOptimum {
		return
	}
	p.addLevels(tieBreak / float64(len(p.x)))
	for i, x := range p.x {
		if last := p.s.Jobs[i].Last; last >= 0 {
			j := &p.s.Jobs[i]
			p.SetCost(x[last], (1+stayBonus)*tieBreak/float64(len(p.x))*p.s.level(j)*j.Candidates[last].Rate)
		}
	}
}

const tieBreak = 1e-3

// stayBonus is the relative bonus in the tie-break for the candidate that a job holds.
const stayBonus = 0.1

// addLevels sets the objective to factor times the sum of levels.
func (p *program) addLevels(factor float64) {
	for i := range p.x {
		j := &p.s.Jobs[i]
		for k, x := range p.x[i] {
			p.SetCost(x, factor*p.s.level(j)*j.Candidates[k].Rate)
		}
	}
}
