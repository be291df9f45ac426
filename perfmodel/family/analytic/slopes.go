package analytic

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// paramGroup is a set of parameters that scale the same constants of a site, such as the memory bandwidth
// parameter of all sites, of a framework and of a site. They share one finite difference.
type paramGroup struct {
	by    *parameter
	at    []int // indices in x
	moved perturbed
}

// perturbed is a set of constants with some values multiplied by factors.
type perturbed struct {
	constants
	figures []*float64 // pointers into constants
	factors []float64  // one per entry of figures
}

func (t *perturbed) perturb(by *parameter, factor float64) {
	for _, v := range by.at(&t.constants) {
		t.figures, t.factors = append(t.figures, v), append(t.factors, factor)
	}
}

// from sets t to the constants k, perturbed.
func (t *perturbed) from(k *constants) {
	t.constants = *k
	for i, v := range t.figures {
		*v *= t.factors[i]
	}
}

// groupSet has one byte per paramGroup, 1 for members of the set.
type groupSet []byte

// slopes computes the derivatives of the rows of a site. A row depends on about a dozen of fifty groups,
// determined by its plan. The groups that were active last time are perturbed one by one, the others all at
// once, each by another factor. Only if that changes the row's time, because another side of a roofline now
// limits it, each of the others is perturbed too.
type slopes struct {
	groups []*paramGroup
	moves  []groupSet            // by row: the groups active last time; nil before the first time
	any    groupSet              // groups that were active in any row
	rest   map[string]*perturbed // by groupSet: constants with all groups outside it perturbed
}

func (c *Calibration) newSlopes(g *rowGroup) *slopes {
	s := &slopes{rest: map[string]*perturbed{}}
	still := base
	c.keepRead(g, &still)
	seen := map[constants]*paramGroup{}
	add := func(p *parameter, at int) {
		is := base
		for _, v := range p.at(&is) {
			*v *= 2
		}
		if c.keepRead(g, &is); is == still {
			return
		}
		k := seen[is]
		if k == nil {
			k = &paramGroup{by: p}
			k.moved.perturb(p, math.Exp(bayes.Step))
			seen[is], s.groups = k, append(s.groups, k)
		}
		k.at = append(k.at, at)
	}
	for i := range params {
		add(&params[i], i)
	}
	for i := range effects {
		add(&effects[i], g.framework+i)
		add(&effects[i], g.site+i)
	}
	s.moves, s.any = make([]groupSet, len(g.rows)), make(groupSet, len(s.groups))
	return s
}

// keepRead zeroes the constants that no row of g depends on: those of other generations, formats and kinds of
// launch, and those of experts if no model has any.
func (c *Calibration) keepRead(g *rowGroup, k *constants) {
	var read constants
	for _, i := range g.rows {
		m := &c.opened[i].machine
		from, to := &k.shares[m.sheet.generation], &read.shares[m.sheet.generation]
		to.gemm, to.flash, to.ring, to.start, to.hop = from.gemm, from.flash, from.ring, from.start, from.hop
		if p := c.plan[i].Precision; p.Format() == spec.FP8 || p == spec.FP4 {
			to.gemm8, to.gemm4 = from.gemm8, from.gemm4
		}
		moe := c.opened[i].work.moe > 0
		on := func(s *traits) {
			read.launch[s.launch] = k.launch[s.launch]
			if moe {
				read.routing[s.routing] = k.routing[s.routing]
			}
		}
		on(&m.stack)
		for v := range c.opened[i].variants {
			on(&c.opened[i].variants[v].stack)
		}
	}
	k.shares, k.launch, k.routing = read.shares, read.launch, read.routing
}

// Differentiate writes forward differences to jac, for each row only by the active groups. The error is that of
// ctx.
func (c *Calibration) Differentiate(ctx context.Context, x []float64, jac *mat.Dense) error {
	done := 0
	for gi := range c.groups {
		g := &c.groups[gi]
		if g.slopes == nil {
			g.slopes = c.newSlopes(g)
		}
		k := c.constantsOf(g, x)
		g.slopes.from(&k)
		for r := range g.rows {
			if done++; done%rowsPerCheck == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			c.differentiateRow(g, r, &k, jac)
		}
	}
	return ctx.Err()
}

// from perturbs every group, starting at constants k.
func (s *slopes) from(k *constants) {
	for _, group := range s.groups {
		group.moved.from(k)
	}
	for _, t := range s.rest {
		t.from(k)
	}
}

// others returns constants k with all groups outside set perturbed.
func (s *slopes) others(set groupSet, k *constants) *constants {
	t, ok := s.rest[string(set)]
	if !ok {
		t = &perturbed{}
		for i, in := range set {
			if in == 0 {
				t.perturb(s.groups[i].by, math.Exp(bayes.Step*float64(1+i)))
			}
		}
		t.from(k)
		s.rest[string(set)] = t
	}
	return &t.constants
}

// differentiateRow writes the derivatives of row r of g at its constants k.
func (c *Calibration) differentiateRow(g *rowGroup, r int, k *constants, jac *mat.Dense) {
	s, row := g.slopes, g.rows[r]
	still := c.seconds(row, k)
	last, now := s.moves[r], make(groupSet, len(s.groups))
	if last == nil {
		last = slices.Clone(s.any)
	}
	by := func(i int) {
		moved := c.seconds(row, &s.groups[i].moved.constants)
		if moved == still {
			return
		}
		now[i], s.any[i] = 1, 1
		for _, p := range s.groups[i].at {
			jac.Set(row, p, logRatio(moved, still)/bayes.Step)
		}
	}
	another := c.seconds(row, s.others(last, k)) != still
	for i, in := range last {
		if in == 1 || another {
			by(i)
		}
	}
	s.moves[r] = now
}

// logRatio returns ln(a/b) for a close to b, by a series.
func logRatio(a, b float64) float64 {
	r := (a - b) / b
	return r * (1 - r*(1./2-r/3))
}

// seconds returns the step time of row i under constants k.
func (c *Calibration) seconds(i int, k *constants) float64 {
	pr := &c.opened[i]
	if pr.variants != nil {
		return math.Exp(pr.meanLog(&c.plan[i], k))
	}
	pr.machine.use(k)
	parts := pr.parts(&c.plan[i])
	return parts.Total()
}
