package rubick

import (
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/design"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// chooseDraws is the number of draws of the parameters over which a choice is scored.
const chooseDraws = 16

// Choose selects the n candidates that, once measured and fitted, leave the smallest mean standard deviation of
// ln T over all candidates: a Bayesian I-optimal design (Chaloner and Verdinelli, Bayesian Experimental Design,
// Statistical Science 1995), with the formula linearised at draws from the prior. Candidates are added one by
// one, then exchanged one by one, in canonical order, so their given order does not matter. No step time is
// used. The indices ascend and belong to the caller.
func Choose(candidates []spec.Config, n int) []int {
	if n >= len(candidates) {
		return design.Ascending(len(candidates))
	}
	if n <= 0 {
		return nil
	}
	order := perfmodel.OrderConfigs(candidates, nil)
	if order = soundFirst(candidates, order, n); len(order) == n {
		slices.Sort(order)
		return order
	}
	if size := max(design.MaxPool, n); len(order) > size {
		order = design.Spread(order, size)
	}
	d := priorDesign(candidates, order)
	d.Grow(n)
	d.Improve()
	out := make([]int, 0, n)
	for _, c := range d.Chosen {
		out = append(out, order[c])
	}
	slices.Sort(out)
	return out
}

// soundFirst returns the candidates of order that the family covers. If there are fewer than n, it appends
// others.
func soundFirst(candidates []spec.Config, order []int, n int) []int {
	var sound, odd []int
	for _, i := range order {
		if coversConfig(&candidates[i], candidates[i].Key()) == nil {
			sound = append(sound, i)
		} else {
			odd = append(odd, i)
		}
	}
	return append(sound, odd[:min(len(odd), max(n-len(sound), 0))]...)
}

// priorDesign returns a Selection among the candidates in order, without measured rows. Draws alternate between
// both readings of pipelines.
func priorDesign(candidates []spec.Config, order []int) *design.Selection {
	n := len(order)
	plain, split := make([]configTerms, n), make([]configTerms, n)
	for i, c := range order {
		plain[i] = newTerms(&candidates[c], false)
		split[i] = newTerms(&candidates[c], true)
	}
	residual := newResiduals(plain, design.Ascending(n), nil, gp.Cholesky{})
	readings := []*reading{newReading(plain, nil), newReading(split, nil)}
	rng := rand.New(rand.NewPCG(1, 2)) // fixed, so that the same candidates give the same design
	d := &design.Selection{Taken: func(int) bool { return false }}
	for draw := range chooseDraws {
		r := readings[draw%2]
		at := r.mode // the first view is at the median
		if draw > 0 {
			at = r.draw(rng)
		}
		d.Views = append(d.Views, r.view(residual, at))
	}
	d.Score = func(views []design.View, _ []int, c int) float64 {
		sum := 0.0
		for k := range views {
			sum += views[k].Width(c, 1, nil)
		}
		return sum
	}
	return d
}
