package family

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// knob is the parameters that move the same figures, of those that the steps of
// a site depend on, by the same factor: such as the memory bandwidth of all, of a
// framework and of a site. Derivatives by them are the same.
type knob struct {
	by    *param
	at    []int // in x
	moved turned
}

// turned is constants of which some figures are moved by a factor.
type turned struct {
	constants
	figures []*float64 // in constants
	factors []float64  // by figure
}

func (t *turned) turn(by *param, factor float64) {
	for _, v := range by.at(&t.constants) {
		t.figures, t.factors = append(t.figures, v), append(t.factors, factor)
	}
}

// from makes t the constants k with figures moved.
func (t *turned) from(k *constants) {
	t.constants = *k
	for i, v := range t.figures {
		*v *= t.factors[i]
	}
}

// knobSet has a byte for each knob of a group, 1 for those in the set.
type knobSet []byte

// slopes takes the derivatives of a group's rows. A row depends on a dozen knobs
// of some fifty, on which ones follows from its plan: those that moved it last
// are turned one by one, all others at once, each by another angle. Only where
// that moves the row, since another side of a roofline or a pipe now counts, is
// each of them turned.
type slopes struct {
	knobs []*knob
	moves []knobSet          // by row of the group: what moved it last; nil before the first time
	any   knobSet            // what has moved any row
	rest  map[string]*turned // by knobSet: all other knobs turned
}

func (c *calibration) newSlopes(g *rowGroup) *slopes {
	s := &slopes{rest: map[string]*turned{}}
	still := base
	c.keepRead(g, &still)
	seen := map[constants]*knob{}
	add := func(p *param, at int) {
		is := base
		for _, v := range p.at(&is) {
			*v *= 2
		}
		if c.keepRead(g, &is); is == still {
			return
		}
		k := seen[is]
		if k == nil {
			k = &knob{by: p}
			k.moved.turn(p, math.Exp(bayes.Step))
			seen[is], s.knobs = k, append(s.knobs, k)
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
	s.moves, s.any = make([]knobSet, len(g.rows)), make(knobSet, len(s.knobs))
	return s
}

// keepRead zeroes the figures of k that no row of g can depend on: those of other
// generations, formats and ways to launch, and of experts where there are none.
func (c *calibration) keepRead(g *rowGroup, k *constants) {
	var read constants
	for _, i := range g.rows {
		m := &c.opened[i].machine
		from, to := &k.shares[m.sheet.generation], &read.shares[m.sheet.generation]
		to.gemm, to.flash, to.ring, to.hop = from.gemm, from.flash, from.ring, from.hop
		if p := c.plan[i].Precision; p.Format() == spec.FP8 || p == spec.FP4 {
			to.gemm8, to.gemm4 = from.gemm8, from.gemm4
		}
		if c.opened[i].work.moe > 0 {
			read.moeSyncSec = k.moeSyncSec
		}
		read.launch[m.stack.launch] = k.launch[m.stack.launch]
	}
	k.shares, k.launch, k.moeSyncSec = read.shares, read.launch, read.moeSyncSec
}

// differentiate takes forward differences, for each row only by what can move
// it.
func (c *calibration) differentiate(x, _ []float64, jac *mat.Dense) {
	for gi := range c.groups {
		g := &c.groups[gi]
		if g.slopes == nil {
			g.slopes = c.newSlopes(g)
		}
		k := c.constantsOf(g, x)
		g.slopes.from(&k)
		for r := range g.rows {
			c.differentiateRow(g, r, &k, jac)
		}
	}
}

// from turns every knob at constants k.
func (s *slopes) from(k *constants) {
	for _, knob := range s.knobs {
		knob.moved.from(k)
	}
	for _, t := range s.rest {
		t.from(k)
	}
}

// others returns constants k with all knobs turned that are not in set.
func (s *slopes) others(set knobSet, k *constants) *constants {
	t, ok := s.rest[string(set)]
	if !ok {
		t = &turned{}
		for i, in := range set {
			if in == 0 {
				t.turn(s.knobs[i].by, math.Exp(bayes.Step*float64(1+i)))
			}
		}
		t.from(k)
		s.rest[string(set)] = t
	}
	return &t.constants
}

// differentiateRow writes the derivatives of row r of g, under its
// constants k.
func (c *calibration) differentiateRow(g *rowGroup, r int, k *constants, jac *mat.Dense) {
	s, row := g.slopes, g.rows[r]
	still := c.seconds(row, k)
	last, now := s.moves[r], make(knobSet, len(s.knobs))
	if last == nil {
		last = slices.Clone(s.any)
	}
	by := func(i int) {
		moved := c.seconds(row, &s.knobs[i].moved.constants)
		if moved == still {
			return
		}
		now[i], s.any[i] = 1, 1
		for _, p := range s.knobs[i].at {
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

// logRatio returns ln(a/b) of nearly equal a and b, without the logarithm.
func logRatio(a, b float64) float64 {
	r := (a - b) / b
	return r * (1 - r*(1./2-r/3))
}

// seconds returns the step time of row i under constants k.
func (c *calibration) seconds(i int, k *constants) float64 {
	pr := &c.opened[i]
	pr.machine.use(k)
	parts := pr.parts(&c.plan[i])
	return parts.Total()
}
