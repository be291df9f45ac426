package family

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// maxPool bounds the candidates a design is made of, and the targets whose
// intervals it is to narrow; more are thinned, evenly.
const maxPool = 160

// rubickResidual is what the formula leaves over of ln T at candidates, given
// rows: a Gaussian process that does not depend on the parameters.
type rubickResidual struct {
	targets []int          // candidates whose intervals count
	white   blas64.General // covariance of candidates with rows, whitened by rows
	cov     []float64      // of candidate c with target i, at c·len(targets)+i
	own     []float64      // variance of each candidate
}

// newRubickResidual conditions on the rows whose residual covariance whiten is
// a factor of; none is none.
func newRubickResidual(candidates []rubickTerms, targets []int, rows []rubickTerms, whiten cholesky) *rubickResidual {
	const variance = rubickAmplitude * rubickAmplitude
	n, m := len(candidates), len(rows)
	r := &rubickResidual{targets: targets, white: matrix(n, m), cov: make([]float64, n*len(targets)), own: make([]float64, n)}
	for c := range candidates {
		row := r.white.Data[c*m : (c+1)*m]
		for j := range rows {
			row[j] = variance * candidates[c].likeness(&rows[j])
		}
		if m > 0 {
			whiten.forward(row)
		}
		r.own[c] = variance - dot(row, row)
		for i, t := range targets {
			r.cov[c*len(targets)+i] = variance * candidates[c].likeness(&candidates[t])
		}
	}
	if m > 0 {
		multiply(-1, r.white, pickRows(r.white, targets), r.cov)
	}
	return r
}

// matrix returns a zero matrix.
func matrix(rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: max(cols, 1), Data: make([]float64, rows*cols)}
}

// pickRows returns a copy of some rows of a.
func pickRows(a blas64.General, rows []int) blas64.General {
	out := matrix(len(rows), a.Cols)
	for i, r := range rows {
		copy(out.Data[i*a.Cols:(i+1)*a.Cols], a.Data[r*a.Cols:])
	}
	return out
}

// multiply adds alpha·a·bᵀ to c.
func multiply(alpha float64, a, b blas64.General, c []float64) {
	blas64.Gemm(blas.NoTrans, blas.Trans, alpha, a, b, 1, blas64.General{Rows: a.Rows, Cols: b.Rows, Stride: b.Rows, Data: c})
}

// rubickReading is one way to read the plans of pipelines (see fitRubickBest),
// with what the rows say of the parameters if it is the right one.
type rubickReading struct {
	terms  []rubickTerms    // of the candidates
	post   *rubickPosterior // of the rows; nil = none
	mode   rubickVec        // of the parameters' logarithms
	sd     rubickVec        // of the prior
	weight float64          // probability that it is the right one
}

// newRubickReading takes the prior for granted where post is nil.
func newRubickReading(terms []rubickTerms, post *rubickPosterior) *rubickReading {
	r := &rubickReading{terms: terms, post: post, weight: 1}
	r.mode, r.sd = rubickBelief(&terms[0])
	if post != nil {
		r.mode = post.mean
	}
	return r
}

// draw returns parameters as likely as the rows leave them.
func (r *rubickReading) draw(rng *rand.Rand) rubickVec {
	var z rubickVec
	for a := range z {
		z[a] = rng.NormFloat64()
	}
	if r.post != nil {
		r.post.precise.backward(z[:])
	} else {
		for a := range z {
			z[a] *= r.sd[a]
		}
	}
	for a := range z {
		z[a] += r.mode[a]
	}
	return z
}

// rubickView is what is believed of ln T, noise of a run excluded: covariances
// with the formula linearised at one draw of the parameters.
type rubickView struct {
	weight float64
	cov    []float64 // of candidate c with target i, at c·targets+i
	own    []float64 // variance of each candidate
	target []float64 // variance of each target
}

// view linearises the formula at parameters whose logarithms are at.
func (r *rubickReading) view(res *rubickResidual, at rubickVec) rubickView {
	e := at.natural()
	steep := r.whitenedRows(&e)
	precise, ok := newCholesky(rbN, func(i, j int) float64 {
		v := dot(steep.Data[i*steep.Cols:(i+1)*steep.Cols], steep.Data[j*steep.Cols:(j+1)*steep.Cols])
		if i == j {
			v += 1 / (r.sd[i] * r.sd[i])
		}
		return v
	})
	v := rubickView{cov: slices.Clone(res.cov), own: slices.Clone(res.own), target: make([]float64, len(res.targets))}
	if ok { // else parameters are beyond all bounds, and only the residual counts
		spread := r.spread(res, &e, steep, precise)
		for c := range v.own {
			p := spread.Data[c*rbN : (c+1)*rbN]
			v.own[c] += dot(p, p)
		}
		multiply(1, spread, pickRows(spread, res.targets), v.cov)
	}
	for i, t := range res.targets {
		v.target[i] = v.own[t]
	}
	return v
}

// whitenedRows returns d ln T / d ln e of the rows, a line per parameter,
// whitened by the residual covariance.
func (r *rubickReading) whitenedRows(e *rubickVec) blas64.General {
	if r.post == nil {
		return matrix(rbN, 0)
	}
	m := len(r.post.terms)
	out := matrix(rbN, m)
	var grad rubickVec
	for j := range r.post.terms {
		r.post.terms[j].seconds(e, &grad)
		for a, g := range grad {
			out.Data[a*m+j] = g
		}
	}
	for a := range rbN {
		r.post.residual.forward(out.Data[a*m : (a+1)*m])
	}
	return out
}

// spread returns for each candidate the factor p of the part p·pᵀ of its
// covariances that the parameters make.
func (r *rubickReading) spread(res *rubickResidual, e *rubickVec, steep blas64.General, precise cholesky) blas64.General {
	out := matrix(len(r.terms), rbN)
	var grad rubickVec
	for c := range r.terms {
		r.terms[c].seconds(e, &grad)
		copy(out.Data[c*rbN:], grad[:])
	}
	if steep.Cols > 0 {
		multiply(-1, res.white, steep, out.Data)
	}
	for c := range r.terms {
		precise.forward(out.Data[c*rbN : (c+1)*rbN])
	}
	return out
}

// addBetween adds the variance of a quantity that is by[c] higher at candidate c
// under another reading.
func (v *rubickView) addBetween(variance float64, by []float64, targets []int) {
	nt := len(targets)
	for c, d := range by {
		v.own[c] += variance * d * d
		for i, t := range targets {
			v.cov[c*nt+i] += variance * d * by[t]
		}
	}
	for i, t := range targets {
		v.target[i] = v.own[t]
	}
}

// measure conditions the view on a measurement of candidate c, when every
// candidate is a target.
func (v *rubickView) measure(c int) {
	n := len(v.own)
	col := slices.Clone(v.cov[c*n : (c+1)*n])
	noisy := v.own[c] + rubickNoise*rubickNoise
	for i := range n {
		q := col[i] / noisy
		row := v.cov[i*n : (i+1)*n]
		for j, x := range col {
			row[j] -= q * x
		}
		v.own[i] = row[i]
		v.target[i] = row[i]
	}
}

// among returns the view with some of the targets, by their places in the list,
// for candidates and for targets.
func (v *rubickView) among(some, targets []int) rubickView {
	n := len(some)
	out := rubickView{v.weight, make([]float64, 0, n*n), make([]float64, 0, n), make([]float64, 0, n)}
	for _, c := range some {
		row := v.cov[targets[c]*len(targets):]
		for _, i := range some {
			out.cov = append(out.cov, row[i])
		}
		out.own, out.target = append(out.own, v.target[c]), append(out.target, v.target[c])
	}
	return out
}

func (v *rubickView) clone() rubickView {
	return rubickView{v.weight, slices.Clone(v.cov), slices.Clone(v.own), slices.Clone(v.target)}
}

// width sums over targets the square root of half² times the variance, noise of
// a run included, plus extra, once candidate c is measured; as it is for c < 0.
// No extra is none.
func (v *rubickView) width(c int, half float64, extra []float64) float64 {
	const noise = rubickNoise * rubickNoise
	nt := len(v.target)
	sum, h2, q := 0.0, half*half, 0.0
	var row []float64
	if c >= 0 {
		row, q = v.cov[c*nt:(c+1)*nt], 1/(v.own[c]+noise)
	}
	for i, s := range v.target {
		if c >= 0 {
			s = max(s-row[i]*row[i]*q, 0)
		}
		s = h2 * (s + noise)
		if extra != nil {
			s += extra[i]
		}
		sum += math.Sqrt(s)
	}
	return sum
}

// setScore is how bad a design is once candidate c is measured after those in
// rest, which the views are conditioned on.
type setScore func(views []rubickView, rest []int, c int) float64

// design is a choice of candidates in progress, every one of them a target.
type design struct {
	views  []rubickView
	taken  func(c int) bool // not to be chosen, besides what is
	score  setScore
	chosen []int
	least  float64 // score of chosen
}

// given returns the views once the candidates in rows are measured.
func (d *design) given(rows []int) []rubickView {
	out := make([]rubickView, len(d.views))
	for k := range d.views {
		out[k] = d.views[k].clone()
		for _, r := range rows {
			out[k].measure(r)
		}
	}
	return out
}

// best returns the candidate whose measurement after rest leaves the lowest
// score, the first of equals, -1 if no score is finite.
func (d *design) best(views []rubickView, rest []int) (candidate int, score float64) {
	candidate, score = -1, math.Inf(1)
	for c := range views[0].own {
		if slices.Contains(rest, c) || d.taken(c) {
			continue
		}
		if s := d.score(views, rest, c); s < score*(1-1e-9) {
			candidate, score = c, s
		}
	}
	return candidate, score
}

// grow chooses up to n candidates, greedily.
func (d *design) grow(n int) {
	views := d.given(nil)
	for len(d.chosen) < n {
		c, s := d.best(views, d.chosen)
		if c < 0 { // figures beyond all bounds: no score is finite
			c = slices.IndexFunc(ascending(len(d.views[0].own)), func(c int) bool { return !slices.Contains(d.chosen, c) && !d.taken(c) })
		}
		d.chosen, d.least = append(d.chosen, c), s
		for k := range views {
			views[k].measure(c)
		}
	}
}

// maxSwaps bounds the passes of improve.
const maxSwaps = 2

// improve exchanges chosen candidates one by one while that lowers the score.
func (d *design) improve() {
	for range maxSwaps {
		if !d.swap() {
			return
		}
	}
}

// swap exchanges each chosen candidate for a better one and reports whether
// any was.
func (d *design) swap() bool {
	swapped := false
	for i := range d.chosen {
		rest := slices.Delete(slices.Clone(d.chosen), i, i+1)
		if c, s := d.best(d.given(rest), rest); s < d.least*(1-1e-6) {
			d.chosen[i], d.least, swapped = c, s, true
		}
	}
	return swapped
}
