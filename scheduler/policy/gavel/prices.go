package gavel

import (
	"context"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

// pricing is what byPrices asks for, in memory that it uses again.
type pricing struct {
	problem lp.MaxMin
	rates   []float64 // those of problem
	row     []int     // of each job in problem, -1 = none
	turn    int       // counts the problems
}

// priced is the state of a candidateSet in byPrices: in which problem it was last, the last
// factor it had there, and its row.
type priced struct {
	turn   int
	factor float64
	row    int
}

// byPrices maximises the least throughput, each times a factor. Jobs with factor 0 get
// nothing, and no jobs share devices. No group is twice among the ways of a job alone. Jobs
// of one candidateSet and factor are one row to the solver, as large as all of them.
func (s *Shares) byPrices(ctx context.Context, factor func(i int) float64) error {
	if s.pricing == nil {
		s.pricing = &pricing{}
	}
	p := s.pricing
	p.state(s, factor)
	sol, err := p.problem.Solve(ctx)
	if err != nil {
		return err
	}
	for i, at := range p.row {
		if at < 0 {
			continue
		}
		x := sol.X[at]
		for k, w := range s.Jobs[i].Ways {
			if w.Beside == 0 {
				s.Jobs[i].X[k] = min(max(x[w.Group], 0), 1)
			}
		}
	}
	return nil
}

// state writes down the problem of s, and clears its fractions.
func (p *pricing) state(s *Shares, factor func(i int) float64) {
	p.turn++
	types := len(s.Devices)
	p.rates = slices.Grow(p.rates[:0], len(s.Jobs)*types)
	p.problem = lp.MaxMin{Capacity: s.Devices, Rates: p.problem.Rates[:0], Sizes: p.problem.Sizes[:0]}
	p.row = p.row[:0]
	for i := range s.Jobs {
		j := &s.Jobs[i]
		clear(j.X)
		f := 0.0
		if len(j.Ways) > 0 {
			f = factor(i)
		}
		p.row = append(p.row, p.add(j, f, types))
	}
}

// add returns the row of a job, which it may have in common with others; -1 if f is 0.
func (p *pricing) add(j *Share, f float64, types int) int {
	if f == 0 {
		return -1
	}
	if m := j.candidateSet; m != nil && m.priced.turn == p.turn && m.priced.factor == f {
		p.problem.Sizes[m.priced.row] += j.Devices()
		return m.priced.row
	}
	n, row := len(p.rates), len(p.problem.Rates)
	p.rates = p.rates[:n+types]
	rates := p.rates[n:]
	clear(rates)
	for _, w := range j.Ways {
		if w.Beside == 0 {
			rates[w.Group] = f * w.Rate
		}
	}
	p.problem.Rates, p.problem.Sizes = append(p.problem.Rates, rates), append(p.problem.Sizes, j.Devices())
	if j.candidateSet != nil {
		j.candidateSet.priced = priced{p.turn, f, row}
	}
	return row
}
