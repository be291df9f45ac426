package gavel

import (
	"context"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

// pricing is the max-min problem of byPrices in reused memory.
type pricing struct {
	problem   lp.MaxMin
	rates     []float64 // memory of problem.Rates
	row       []int     // of each job in problem, -1 = none
	problemID int       // counts the problems
}

// priced is the row of a candidateSet in its last problem of byPrices, and its factor.
type priced struct {
	problemID int
	factor    float64
	row       int
}

// byPrices maximises the lowest product of throughput and factor. Jobs with factor 0 get
// nothing, and no jobs share devices. A job may have one candidate per group without a
// partner. Jobs with equal candidateSet and factor are one row of the problem.
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
		for k, w := range s.Jobs[i].Candidates {
			if w.Partner == 0 {
				s.Jobs[i].X[k] = min(max(x[w.Group], 0), 1)
			}
		}
	}
	return nil
}

// state sets up the problem of s, and clears its fractions.
func (p *pricing) state(s *Shares, factor func(i int) float64) {
	p.problemID++
	types := len(s.Devices)
	p.rates = slices.Grow(p.rates[:0], len(s.Jobs)*types)
	p.problem = lp.MaxMin{Capacity: s.Devices, Rates: p.problem.Rates[:0], Sizes: p.problem.Sizes[:0]}
	p.row = p.row[:0]
	for i := range s.Jobs {
		j := &s.Jobs[i]
		clear(j.X)
		f := 0.0
		if len(j.Candidates) > 0 {
			f = factor(i)
		}
		p.row = append(p.row, p.add(j, f, types))
	}
}

// add returns the row of a job, -1 if f is 0. Several jobs may have one row.
func (p *pricing) add(j *Share, f float64, types int) int {
	if f == 0 {
		return -1
	}
	if m := j.candidateSet; m != nil && m.priced.problemID == p.problemID && m.priced.factor == f {
		p.problem.Sizes[m.priced.row] += j.Devices()
		return m.priced.row
	}
	n, row := len(p.rates), len(p.problem.Rates)
	p.rates = p.rates[:n+types]
	rates := p.rates[n:]
	clear(rates)
	for _, w := range j.Candidates {
		if w.Partner == 0 {
			rates[w.Group] = f * w.Rate
		}
	}
	p.problem.Rates, p.problem.Sizes = append(p.problem.Rates, rates), append(p.problem.Sizes, j.Devices())
	if j.candidateSet != nil {
		j.candidateSet.priced = priced{p.problemID, f, row}
	}
	return row
}
