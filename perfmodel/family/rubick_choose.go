package family

import (
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// chooseDraws is how many draws of the parameters a choice is weighed under.
const chooseDraws = 16

// chooseRubick picks the n candidates that, measured and fitted, leave the
// least mean standard deviation of ln T over all candidates: a Bayesian
// I-optimal design (Chaloner and Verdinelli, Bayesian Experimental Design,
// Statistical Science 1995), the formula linearised at draws from the prior.
// One by one, then exchanged one by one. Candidates are looked at in canonical
// order, so theirs does not matter; no step time is.
func chooseRubick(candidates []spec.Config, n int) []int {
	if n >= len(candidates) {
		return ascending(len(candidates))
	}
	if n <= 0 {
		return nil
	}
	order := ascending(len(candidates))
	slices.SortStableFunc(order, func(a, b int) int {
		return perfmodel.CompareConfigs(candidates[a], candidates[b])
	})
	if order = soundFirst(candidates, order, n); len(order) == n {
		slices.Sort(order)
		return order
	}
	if size := max(maxPool, n); len(order) > size {
		order = spread(order, size)
	}
	d := priorDesign(candidates, order)
	d.grow(n)
	d.improve()
	out := make([]int, 0, n)
	for _, c := range d.chosen {
		out = append(out, order[c])
	}
	slices.Sort(out)
	return out
}

// soundFirst returns those of order that the model covers: the others tell it
// nothing. They fill up to n if there are too few.
func soundFirst(candidates []spec.Config, order []int, n int) []int {
	var sound, odd []int
	for _, i := range order {
		if rubickCovers(&candidates[i], candidates[i].Key()) == nil {
			sound = append(sound, i)
		} else {
			odd = append(odd, i)
		}
	}
	return append(sound, odd[:min(len(odd), max(n-len(sound), 0))]...)
}

func ascending(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// spread returns n elements of s, evenly spread.
func spread(s []int, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = s[i*len(s)/n]
	}
	return out
}

// priorDesign is a design of the candidates in order, of which nothing is
// measured. Both readings of pipelines are looked at, in turn.
func priorDesign(candidates []spec.Config, order []int) *design {
	n := len(order)
	plain, split := make([]rubickTerms, n), make([]rubickTerms, n)
	for i, c := range order {
		plain[i] = newRubickTerms(&candidates[c], false)
		split[i] = newRubickTerms(&candidates[c], true)
	}
	residual := newRubickResidual(plain, ascending(n), nil, cholesky{})
	readings := []*rubickReading{newRubickReading(plain, nil), newRubickReading(split, nil)}
	rng := rand.New(rand.NewPCG(1, 2)) // fixed: the same candidates, the same design
	d := &design{taken: func(int) bool { return false }}
	for draw := range chooseDraws {
		r := readings[draw%2]
		at := r.mode // the first is the median
		if draw > 0 {
			at = r.draw(rng)
		}
		d.views = append(d.views, r.view(residual, at))
	}
	d.score = func(views []rubickView, _ []int, c int) float64 {
		sum := 0.0
		for k := range views {
			sum += views[k].width(c, 1, nil)
		}
		return sum
	}
	return d
}
