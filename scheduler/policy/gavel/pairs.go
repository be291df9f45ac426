package gavel

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/internal/lp"
)

// side is jobs of one kind on so many devices of a group beside those of another.
type side struct{ group, devices, kind, beside int }

// other is what at is for those of the other kind.
func (at side) other() side { return side{at.group, at.devices, at.beside, at.kind} }

// pairing is what two kinds have to do with each other in a programme.
type pairing struct {
	side              // the kind of the lesser number
	mine, its []entry // of the jobs of either kind; of one kind beside itself its is empty
	gain      float64 // what two together make over what they make in turns
	mutual    lp.Row  // mine - its = 0; of one kind beside itself mine - total = 0
	total     lp.Var  // and each of mine at most half of it
	half      []lp.Row
}

// entry is a variable of a programme: the time of a job beside jobs of a kind.
type entry struct {
	lp.Var
	part float64 // of its speed alone that it keeps
}

// together makes shared time mutual: the time of all jobs of a kind with those of another
// equals the time of these with them. A job does not share with itself: among jobs of one
// kind no job has more shared time than all others together (Narayanan et al., Gavel, OSDI
// 2020, section 3.1, with pairs by kind; Gavel's code gives all jobs of a kind equal time
// with each other, which is one solution).
func (p *program) together() {
	sums := map[side][]entry{}
	var order []side
	for i := range p.s.Jobs {
		j := &p.s.Jobs[i]
		for k := range j.Ways {
			w := &j.Ways[k]
			if w.Beside == 0 {
				continue
			}
			at := side{w.Group, w.Devices, j.kind, w.Beside}
			if sums[at] == nil {
				order = append(order, at)
			}
			alone := j.Ways[wayLike(j.Ways, Way{Group: w.Group, Devices: w.Devices})].Rate
			sums[at] = append(sums[at], entry{p.x[i][k], w.Rate / alone})
		}
	}
	for _, at := range order {
		mine, its := sums[at], sums[at.other()]
		switch {
		case len(its) == 0: // the others cannot: no node of theirs is up
			for _, x := range mine {
				p.SetBounds(x.Var, 0, 0)
			}
		case at.kind == at.beside:
			p.amongThemselves(at, mine)
		case at.kind < at.beside:
			q := pairing{side: at, mine: mine, its: its, gain: mine[0].part + its[0].part - 1}
			var terms []lp.Term
			for _, x := range mine {
				terms = append(terms, lp.Term{Var: x.Var, Coef: 1})
			}
			for _, x := range its {
				terms = append(terms, lp.Term{Var: x.Var, Coef: -1})
			}
			q.mutual = p.Equal("", 0, terms...)
			p.pairs = append(p.pairs, q)
		}
	}
}

// amongThemselves adds the pairing of a kind beside itself.
func (p *program) amongThemselves(at side, mine []entry) {
	q := pairing{side: at, mine: mine, gain: 2*mine[0].part - 1, total: p.Var("", 0, lp.Inf, 0)}
	terms := []lp.Term{{Var: q.total, Coef: -1}}
	for _, x := range mine {
		terms = append(terms, lp.Term{Var: x.Var, Coef: 1})
		q.half = append(q.half, p.AtMost("", 0, lp.Term{Var: x.Var, Coef: 2}, lp.Term{Var: q.total, Coef: -1}))
	}
	q.mutual = p.Equal("", 0, terms...)
	p.pairs = append(p.pairs, q)
}

// byPairs solves with few of the pairings, and adds those that are worth something
// at the prices of the optimum until none is (column generation: Dantzig and Wolfe,
// 1960). Most never are. In the end prices are found for all that were left out,
// and the answer is checked against the whole programme.
func (p *program) byPairs(ctx context.Context) (*lp.Solution, error) {
	in := p.promising()
	for {
		sol, err := p.SolveOnly(ctx, p.columns(in), lp.Options{})
		if errors.Is(err, lp.ErrInfeasible) && slices.Contains(in, false) {
			in = slices.Repeat([]bool{true}, len(in)) // what is asked for may take them
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
		if more := p.worthwhile(worth); len(more) > 0 {
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

// columns are the variables of a programme but for those of the pairings that are
// not in.
func (p *program) columns(in []bool) []bool {
	keep := slices.Repeat([]bool{true}, p.NumVars())
	for i := range p.pairs {
		q := &p.pairs[i]
		for _, list := range [][]entry{q.mine, q.its} {
			for _, x := range list {
				keep[x.Var] = in[i]
			}
		}
		if q.its == nil {
			keep[q.total] = in[i]
		}
	}
	return keep
}

// promising returns the pairings to begin with: those used before, all that another
// programme about the same jobs needed, and for every kind and group those few that
// gain most.
func (p *program) promising() []bool {
	gain := make([]float64, len(p.pairs))
	for i := range p.pairs {
		gain[i] = p.pairs[i].gain
	}
	in := make([]bool, len(p.pairs))
	for _, i := range p.worthwhile(gain) {
		in[i] = true
	}
	for i := range p.pairs {
		in[i] = in[i] || p.s.used[p.pairs[i].side] || p.s.tried[p.pairs[i].side]
	}
	return in
}

// worthwhile returns the pairings that are worth more than nothing, for every kind
// and group the few best of them.
func (p *program) worthwhile(worth []float64) (out []int) {
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
		a, b := side{group: q.group, devices: q.devices, kind: q.kind}, side{group: q.group, devices: q.devices, kind: q.beside}
		if taken[a] < few || taken[b] < few {
			out = append(out, i)
			taken[a]++
			taken[b]++
		}
	}
	return out
}

// amount is how much of the time is spent in the pairing.
func (q *pairing) amount(sol *lp.Solution) (sum float64) {
	for _, x := range q.mine {
		sum += sol.Value(x.Var)
	}
	return sum
}

// price returns what a pairing that was left out is worth, at most 0 if nothing,
// and then writes the prices of its rows at which none of its variables is.
func (q *pairing) price(sol *lp.Solution, duals []float64) float64 {
	was := sol.Dual(q.mutual)
	if q.its != nil {
		a, _ := q.best(q.mine, func(i int) float64 { return sol.Reduced[q.mine[i].Var] + was })
		b, _ := q.best(q.its, func(i int) float64 { return sol.Reduced[q.its[i].Var] - was })
		duals[q.mutual] = (a - b) / 2
		return a + b
	}
	value := func(i int) float64 { return sol.Reduced[q.mine[i].Var] + was + 2*sol.Dual(q.half[i]) }
	first, at := q.best(q.mine, value)
	for i := range q.half {
		duals[q.half[i]] = 0
	}
	duals[q.mutual] = 0
	if first > 0 {
		duals[q.mutual], duals[q.half[at]] = -first, first
	}
	second, _ := q.best(q.mine, func(i int) float64 {
		if i == at {
			return math.Inf(-1)
		}
		return value(i)
	})
	return first + second
}

// best returns the entry with the greatest value, and that value.
func (q *pairing) best(list []entry, value func(i int) float64) (most float64, at int) {
	most = math.Inf(-1)
	for i := range list {
		if v := value(i); v > most {
			most, at = v, i
		}
	}
	return most, at
}
