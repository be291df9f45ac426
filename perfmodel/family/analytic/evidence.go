package analytic

import (
	"cmp"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Evidence says how well a stack explains the rows of a site, if their stack is not stated. Only evidence of one use
// and set is about the same rows, so only these logs can be compared.
type Evidence struct {
	Use   stack.Use   `json:"use"`
	Set   int         `json:"set,omitempty"` // from 0, the one with the most rows
	Stack stack.Stack `json:"stack"`
	Log   float64     `json:"log"` // log likelihood of the rows on this stack
}

// weights are probabilities of stack.Choices.
type weights [stack.Uses][stack.MaxChoices]float64

// weigh returns the weights of choices after evidence. Each use takes the first set with evidence of all its choices, and
// keeps its weights if there is none.
func weigh(choices *stack.Choices, evidence []Evidence) *weights {
	out := weights(choices.Weight)
	for use := range out {
		of := func(set int) func(Evidence) bool {
			return func(e Evidence) bool { return e.Use == stack.Use(use) && e.Set == set }
		}
		for set := 0; slices.ContainsFunc(evidence, of(set)); set++ {
			if weight, ok := posterior(choices, &out[use], evidence, of(set)); ok {
				out[use] = weight
				break
			}
		}
	}
	return &out
}

// posterior returns weights times likelihoods. ok is false unless there is evidence of every choice with a weight.
func posterior(choices *stack.Choices, weight *[stack.MaxChoices]float64, evidence []Evidence, of func(Evidence) bool) (out [stack.MaxChoices]float64, ok bool) {
	logs, most, sum := out, math.Inf(-1), 0.0
	for i, w := range weight {
		if w == 0 {
			continue
		}
		at := slices.IndexFunc(evidence, func(e Evidence) bool { return of(e) && e.Stack == *choices.Stacks[i] })
		if at < 0 {
			return out, false
		}
		logs[i] = evidence[at].Log
		most = max(most, logs[i])
	}
	for i, w := range weight {
		if w > 0 {
			out[i] = w * math.Exp(logs[i]-most)
			sum += out[i]
		}
	}
	for i := range out {
		out[i] /= sum
	}
	return out, sum > 0
}

// stackNoise is the standard deviation of a row's error around that of its site, in log time.
const stackNoise = 0.1

// Weigh computes the evidence of all sites with rows of a stack that is not stated, under the prior p, and weighs the
// choices of these rows by it. Arrange comes first.
func (c *Calibration) Weigh(p *Prior) {
	for i := range c.groups {
		g := &c.groups[i]
		evidence := evidenceOf(c.openErrors(p, g.rows))
		if evidence == nil {
			continue
		}
		if c.Evidence == nil {
			c.Evidence = map[Site][]Evidence{}
		}
		c.Evidence[g.of] = evidence
		for _, row := range g.rows {
			if pr := &c.opened[row]; pr.variants != nil {
				pr.weight = weigh(pr.choices, evidence)
			}
		}
	}
}

// rowErrors are the errors of a row on each choice of its stack.
type rowErrors struct {
	errorSet
	uses [stack.Uses]bool // with these choices
}

// openErrors returns the errors of the rows without a stated stack.
func (c *Calibration) openErrors(p *Prior, rows []int) (out []rowErrors) {
	for _, row := range rows {
		var pr Prepared
		if c.opened[row].variants == nil || p.Physics.Open(&c.Rows[row].Config, "", &pr) != nil {
			continue
		}
		of := pr.choices.Weight[stack.UseOf(&c.plan[row])]
		var r rowErrors
		for i, w := range &of {
			if w == 0 {
				continue
			}
			parts := pr.on(i, &c.plan[row], nil)
			total := parts.Total()
			load := LoadOf(&parts, total)
			e, v := c.Y[row]-math.Log(total), p.Widths.Variance(&load)
			r.stacks = append(r.stacks, *pr.choices.Stacks[i])
			r.sums = append(r.sums, errorSums{1, e, e * e, v})
		}
		for u := range r.uses {
			r.uses[u] = pr.choices.Weight[u] == of
		}
		out = append(out, r)
	}
	return out
}

// errorSums are sums over rows on one stack.
type errorSums struct{ n, e, square, variance float64 }

func (s *errorSums) add(o errorSums) {
	s.n, s.e, s.square, s.variance = s.n+o.n, s.e+o.e, s.square+o.square, s.variance+o.variance
}

// log returns the log likelihood: the errors of n rows on one stack have the density of N(0, s²·11ᵀ + σ²·I), where s is
// the prior's uncertainty of a site and σ is stackNoise.
func (s *errorSums) log() float64 {
	const v = stackNoise * stackNoise
	site := s.variance / s.n
	return -0.5 * (math.Log1p(s.n*site/v) + (s.square-site/(v+s.n*site)*s.e*s.e)/v)
}

// evidenceOf returns the evidence of a site's rows. Rows may have different choices, such as those of different dates.
// The choices of each row are a set, with the likelihoods of all rows that have these choices.
func evidenceOf(rows []rowErrors) (out []Evidence) {
	for use := range stack.Uses {
		var sets []errorSet
		for i := range rows {
			r := &rows[i]
			if r.uses[use] && !slices.ContainsFunc(sets, func(s errorSet) bool { return len(s.stacks) == len(r.stacks) && r.has(s.stacks) }) {
				sets = append(sets, sumOf(r.stacks, rows, use))
			}
		}
		slices.SortStableFunc(sets, func(a, b errorSet) int { return cmp.Compare(b.sums[0].n, a.sums[0].n) })
		for i, s := range sets {
			for j, of := range s.stacks {
				out = append(out, Evidence{use, i, of, s.sums[j].log()})
			}
		}
	}
	return out
}

// errorSet is a set of stacks with the errors of rows on each.
type errorSet struct {
	stacks []stack.Stack
	sums   []errorSums
}

// sumOf returns the errors of the rows under a use that have all of stacks.
func sumOf(stacks []stack.Stack, rows []rowErrors, use stack.Use) errorSet {
	out := errorSet{stacks, make([]errorSums, len(stacks))}
	for i := range rows {
		r := &rows[i]
		if !r.uses[use] || !r.has(stacks) {
			continue
		}
		for j, of := range stacks {
			out.sums[j].add(r.sums[slices.Index(r.stacks, of)])
		}
	}
	return out
}

// has reports whether s has all of stacks.
func (s *errorSet) has(stacks []stack.Stack) bool {
	return !slices.ContainsFunc(stacks, func(of stack.Stack) bool { return !slices.Contains(s.stacks, of) })
}
