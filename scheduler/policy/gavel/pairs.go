package gavel

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

// side is the jobs of a kind that share a number of devices of a group with partners of
// another kind, or of the same.
type side struct{ group, devices, kind, partner int }

// other is the side of the partners.
func (at side) other() side { return side{at.group, at.devices, at.partner, at.kind} }

// pairing has the variables and rows of two kinds of jobs that share devices.
type pairing struct {
	side                   // of the kind with the lower number
	own, partners []entry  // of the jobs of either kind; partners is empty if the kinds are the same
	gain          float64  // normalised throughput of two jobs together, minus 1 for alternating
	mutual        lp.Row   // sum of own - sum of partners = 0; for the same kind sum of own - total = 0
	total         lp.Var   // same kind only: the sum of own
	half          []lp.Row // same kind only: each of own is at most total/2
}

// entry is the variable for the time of a job with partners of a kind.
type entry struct {
	lp.Var
	part float64 // throughput with a partner / throughput alone
}

// addMutualTime adds space sharing (Gavel, section 3.1) with pairs by kind: the time of the
// jobs of a kind with partners of another equals the time of these partners with them. A
// job is not its own partner: among jobs of one kind, no job has more shared time than all
// others together. Gavel's code gives all jobs of a kind equal time with each other, which
// is one of these solutions.
func (p *program) addMutualTime() {
	sums := map[side][]entry{}
	var order []side
	for i := range p.s.Jobs {
		j := &p.s.Jobs[i]
		for k := range j.Candidates {
			w := &j.Candidates[k]
			if w.Partner == 0 {
				continue
			}
			at := side{w.Group, w.Devices, j.kind, w.Partner}
			if sums[at] == nil {
				order = append(order, at)
			}
			alone := j.Candidates[indexLike(j.Candidates, Candidate{Group: w.Group, Devices: w.Devices})].Rate
			sums[at] = append(sums[at], entry{p.x[i][k], w.Rate / alone})
		}
	}
	for _, at := range order {
		own, partners := sums[at], sums[at.other()]
		switch {
		case len(partners) == 0: // the partners have no candidates: all their nodes are down
			for _, x := range own {
				p.SetBounds(x.Var, 0, 0)
			}
		case at.kind == at.partner:
			p.addSameKind(at, own)
		case at.kind < at.partner:
			q := pairing{side: at, own: own, partners: partners, gain: own[0].part + partners[0].part - 1}
			var terms []lp.Term
			for _, x := range own {
				terms = append(terms, lp.Term{Var: x.Var, Coef: 1})
			}
			for _, x := range partners {
				terms = append(terms, lp.Term{Var: x.Var, Coef: -1})
			}
			q.mutual = p.Equal("", 0, terms...)
			p.pairs = append(p.pairs, q)
		}
	}
}

// addSameKind adds the pairing of jobs of one kind with each other.
func (p *program) addSameKind(at side, own []entry) {
	q := pairing{side: at, own: own, gain: 2*own[0].part - 1, total: p.Var("", 0, lp.Inf, 0)}
	terms := []lp.Term{{Var: q.total, Coef: -1}}
	for _, x := range own {
		terms = append(terms, lp.Term{Var: x.Var, Coef: 1})
		q.half = append(q.half, p.AtMost("", 0, lp.Term{Var: x.Var, Coef: 2}, lp.Term{Var: q.total, Coef: -1}))
	}
	q.mutual = p.Equal("", 0, terms...)
	p.pairs = append(p.pairs, q)
}

// byPairs solves the program by column generation (Dantzig and Wolfe, 1960). It starts
// with few pairings and adds those with positive reduced value until there are none. Most
// pairings are never added. Finally it sets the duals of the pairings left out and checks
// the solution against the whole program.
func (p *program) byPairs(ctx context.Context) (*lp.Solution, error) {
	in := p.initialPairs()
	for {
		sol, err := p.SolveOnly(ctx, p.columns(in), lp.Options{})
		if errors.Is(err, lp.ErrInfeasible) && slices.Contains(in, false) {
			in = slices.Repeat([]bool{true}, len(in)) // deadlines may need sharing
			continue
		}
		if err != nil {
			return nil, err
		}
		duals := slices.Clone(sol.Duals)
		worth := make([]float64, len(p.pairs))
		for i := range p.pairs {
			if !in[i] {
				worth[i] = p.pairs[i].price(sol, duals)
			}
		}
		if more := p.bestPairs(worth); len(more) > 0 {
			for _, i := range more {
				in[i] = true
			}
			continue
		}
		for i := range p.pairs {
			q := &p.pairs[i]
			p.s.used[q.side] = in[i] && q.amount(sol) > leastFraction
			p.s.tried[q.side] = p.s.tried[q.side] || in[i]
		}
		return p.Certify(sol.X, duals, lp.Options{})
	}
}

// columns reports for each variable whether it is used: all but those of the pairings left
// out.
func (p *program) columns(in []bool) []bool {
	keep := slices.Repeat([]bool{true}, p.NumVars())
	for i := range p.pairs {
		q := &p.pairs[i]
		for _, list := range [][]entry{q.own, q.partners} {
			for _, x := range list {
				keep[x.Var] = in[i]
			}
		}
		if q.partners == nil {
			keep[q.total] = in[i]
		}
	}
	return keep
}

// initialPairs returns the pairings to start with: those used by the last solution, those
// added in other programs for these jobs, and the best few of every kind and group by gain.
func (p *program) initialPairs() []bool {
	gain := make([]float64, len(p.pairs))
	for i := range p.pairs {
		gain[i] = p.pairs[i].gain
	}
	in := make([]bool, len(p.pairs))
	for _, i := range p.bestPairs(gain) {
		in[i] = true
	}
	for i := range p.pairs {
		in[i] = in[i] || p.s.used[p.pairs[i].side] || p.s.tried[p.pairs[i].side]
	}
	return in
}

// bestPairs returns the few best pairings of every kind and group with positive worth.
func (p *program) bestPairs(worth []float64) (out []int) {
	const few, nothing = 2, 1e-9
	var order []int
	for i, w := range worth {
		if w > nothing {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(worth[b], worth[a]) })
	taken := map[side]int{}
	for _, i := range order {
		q := &p.pairs[i]
		a, b := side{group: q.group, devices: q.devices, kind: q.kind}, side{group: q.group, devices: q.devices, kind: q.partner}
		if taken[a] < few || taken[b] < few {
			out = append(out, i)
			taken[a]++
			taken[b]++
		}
	}
	return out
}

// amount is the time spent in the pairing.
func (q *pairing) amount(sol *lp.Solution) (sum float64) {
	for _, x := range q.own {
		sum += sol.Value(x.Var)
	}
	return sum
}

// price returns the reduced value of a pairing that was left out. It sets the duals of the
// pairing's rows so that, if the value is not positive, no variable has a positive one.
func (q *pairing) price(sol *lp.Solution, duals []float64) float64 {
	was := sol.Dual(q.mutual)
	if q.partners != nil {
		a, _ := q.best(q.own, func(i int) float64 { return sol.Reduced[q.own[i].Var] + was })
		b, _ := q.best(q.partners, func(i int) float64 { return sol.Reduced[q.partners[i].Var] - was })
		duals[q.mutual] = (a - b) / 2
		return a + b
	}
	value := func(i int) float64 { return sol.Reduced[q.own[i].Var] + was + 2*sol.Dual(q.half[i]) }
	first, at := q.best(q.own, value)
	for i := range q.half {
		duals[q.half[i]] = 0
	}
	duals[q.mutual] = 0
	if first > 0 {
		duals[q.mutual], duals[q.half[at]] = -first, first
	}
	second, _ := q.best(q.own, func(i int) float64 {
		if i == at {
			return math.Inf(-1)
		}
		return value(i)
	})
	return first + second
}

// best returns the entry with the greatest value, and that value.
func (q *pairing) best(list []entry, value func(i int) float64) (highest float64, at int) {
	highest = math.Inf(-1)
	for i := range list {
		if v := value(i); v > highest {
			highest, at = v, i
		}
	}
	return highest, at
}
