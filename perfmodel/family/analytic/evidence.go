package analytic

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Evidence is what the rows of a site say about the stack that they ran on, if that is not stated.
type Evidence struct {
	Use   stack.Use   `json:"use"`
	Stack stack.Stack `json:"stack"`
	Log   float64     `json:"log"` // log likelihood of the rows on this stack
}

// weights are probabilities of stack.Choices.
type weights [stack.Uses][stack.MaxChoices]float64

// weigh returns the weights of choices after evidence.
func weigh(choices *stack.Choices, evidence []Evidence) *weights {
	out := weights(choices.Weight)
	for use := range out {
		most, any := math.Inf(-1), false
		logs := [stack.MaxChoices]float64{}
		for i := range choices.N {
			logs[i] = math.Inf(-1)
			for _, e := range evidence {
				if e.Use == stack.Use(use) && e.Stack == *choices.Stacks[i] {
					logs[i], any = e.Log, true
				}
			}
			most = max(most, logs[i])
		}
		if !any {
			continue
		}
		sum := 0.0
		for i := range choices.N {
			out[use][i] *= math.Exp(logs[i] - most)
			sum += out[use][i]
		}
		for i := range choices.N {
			out[use][i] /= sum
		}
	}
	return &out
}

// stackNoise is the standard deviation of a row's error around that of its site, in log time.
const stackNoise = 0.1

// Weigh computes the evidence of all sites with rows of a stack that is not stated, under the prior p, and weighs the
// choices of these rows by it. Arrange comes first. The errors of n rows on one stack have the density of N(0, s²·11ᵀ
// + σ²·I), where s is the prior's uncertainty of a site and σ is stackNoise.
func (c *Calibration) Weigh(p *Prior) {
	for i := range c.groups {
		g := &c.groups[i]
		sums := map[use]*errorSums{}
		for _, row := range g.rows {
			c.addErrors(p, row, sums)
		}
		if len(sums) == 0 {
			continue
		}
		var evidence []Evidence
		for u, s := range sums {
			evidence = append(evidence, Evidence{u.use, *u.of, s.log()})
		}
		slices.SortFunc(evidence, func(a, b Evidence) int {
			return cmp.Or(cmp.Compare(a.Use, b.Use), strings.Compare(a.Stack.Name, b.Stack.Name), strings.Compare(a.Stack.Date, b.Stack.Date))
		})
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

// use is a choice of stack under a kind of plan.
type use struct {
	use stack.Use
	of  *stack.Stack
}

// errorSums are sums over rows on one choice of stack.
type errorSums struct{ n, e, square, variance float64 }

func (s *errorSums) log() float64 {
	const v = stackNoise * stackNoise
	site := s.variance / s.n
	return -0.5 * (math.Log1p(s.n*site/v) + (s.square-site/(v+s.n*site)*s.e*s.e)/v)
}

// addErrors adds the error of a row on each choice of its stack, under each use with the same choices. It adds nothing
// if the stack is stated.
func (c *Calibration) addErrors(p *Prior, row int, sums map[use]*errorSums) {
	var pr Prepared
	if c.opened[row].variants == nil || p.Physics.Open(&c.Rows[row].Config, "", &pr) != nil {
		return
	}
	of := pr.choices.Weight[stack.UseOf(&c.plan[row])]
	for i, w := range &of {
		if w == 0 {
			continue
		}
		parts := pr.on(i, &c.plan[row], nil)
		total := parts.Total()
		e, sd := c.Y[row]-math.Log(total), p.Widths.SD(&parts, total)
		for u := range pr.choices.Weight {
			if pr.choices.Weight[u] != of {
				continue
			}
			at := use{stack.Use(u), pr.choices.Stacks[i]}
			if sums[at] == nil {
				sums[at] = &errorSums{}
			}
			s := sums[at]
			s.n, s.e, s.square, s.variance = s.n+1, s.e+e, s.square+e*e, s.variance+sd*sd
		}
	}
}
