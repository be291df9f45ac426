package family

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Cost of a design: pools are thinned to maxPool candidates, each weighed under
// designDraws draws of the parameters.
const (
	maxPool     = 160
	designDraws = 16
	maxSwaps    = 2 // passes
)

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
	d := newDesign(candidates, order)
	d.grow(n)
	for range maxSwaps {
		if !d.swap() {
			break
		}
	}
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

// design is a choice of rows in progress.
type design struct {
	n      int         // candidates
	prior  [][]float64 // per draw: covariance of ln T between candidates, n x n
	chosen []int
	score  float64 // mean sd left by chosen, times n x draws
}

func newDesign(candidates []spec.Config, order []int) *design {
	n := len(order)
	d := &design{n: n}
	terms, split := make([]rubickTerms, n), make([]rubickTerms, n)
	for i, c := range order {
		terms[i] = newRubickTerms(&candidates[c], false)
		split[i] = newRubickTerms(&candidates[c], true)
	}
	residual := make([]float64, n*n)
	for i := range terms {
		for j := range terms {
			residual[i*n+j] = rubickAmplitude * rubickAmplitude * terms[i].likeness(&terms[j])
		}
	}
	mean, sd := rubickBelief(&terms[0])
	rng := rand.New(rand.NewPCG(1, 2)) // fixed: the same candidates, the same design
	jac := make([]rubickVec, n)
	for draw := range designDraws {
		at := mean
		if draw > 0 { // the first is the median
			for a := range at {
				at[a] += sd[a] * rng.NormFloat64()
			}
		}
		e := at.natural()
		for i := range terms { // both readings of pipelines, in turn
			terms[i].seconds(&e, &jac[i])
			for a := range sd {
				jac[i][a] *= sd[a]
			}
		}
		cov := slices.Clone(residual)
		for i := range n {
			for j := 0; j <= i; j++ {
				cov[i*n+j] += dot(jac[i][:], jac[j][:])
				cov[j*n+i] = cov[i*n+j]
			}
		}
		d.prior = append(d.prior, cov)
		terms, split = split, terms
	}
	return d
}

// given returns the covariances once the candidates in rows are measured.
func (d *design) given(rows []int) [][]float64 {
	out := make([][]float64, len(d.prior))
	for k, cov := range d.prior {
		out[k] = slices.Clone(cov)
		for _, r := range rows {
			d.measure(out[k], r)
		}
	}
	return out
}

// measure conditions cov on a noisy measurement of candidate c.
func (d *design) measure(cov []float64, c int) {
	col := slices.Clone(cov[c*d.n : (c+1)*d.n])
	noisy := col[c] + rubickNoise*rubickNoise
	for i := range d.n {
		q := col[i] / noisy
		row := cov[i*d.n : (i+1)*d.n]
		for j, v := range col {
			row[j] -= q * v
		}
	}
}

// best returns the candidate, not chosen yet, whose measurement leaves the
// lowest score, the first of equals.
func (d *design) best(cov [][]float64) (candidate int, score float64) {
	candidate, score = -1, math.Inf(1)
	for c := range d.n {
		if slices.Contains(d.chosen, c) {
			continue
		}
		if s := d.left(cov, c); s < score*(1-1e-9) {
			candidate, score = c, s
		}
	}
	return candidate, score
}

// left returns the score once c is measured.
func (d *design) left(cov [][]float64, c int) float64 {
	const noise = rubickNoise * rubickNoise
	sum := 0.0
	for _, m := range cov {
		col := m[c*d.n : (c+1)*d.n]
		noisy := col[c] + noise
		for i, v := range col {
			sum += math.Sqrt(max(m[i*d.n+i]-v*v/noisy, 0) + noise)
		}
	}
	return sum
}

// grow chooses up to n candidates, greedily.
func (d *design) grow(n int) {
	cov := d.given(nil)
	for len(d.chosen) < n {
		c, s := d.best(cov)
		if c < 0 { // figures beyond all bounds: no score is finite
			c = slices.IndexFunc(ascending(d.n), func(c int) bool { return !slices.Contains(d.chosen, c) })
		}
		d.chosen, d.score = append(d.chosen, c), s
		for _, m := range cov {
			d.measure(m, c)
		}
	}
}

// swap exchanges each chosen candidate for a better one and reports whether
// any was.
func (d *design) swap() bool {
	swapped := false
	for i, old := range d.chosen {
		rest := slices.Delete(slices.Clone(d.chosen), i, i+1)
		cov := d.given(rest)
		d.chosen[i] = -1
		if c, s := d.best(cov); s < d.score*(1-1e-6) {
			d.chosen[i], d.score, swapped = c, s, true
		} else {
			d.chosen[i] = old
		}
	}
	return swapped
}
