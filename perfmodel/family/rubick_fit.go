package family

import (
	"errors"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// errNotFinite means rows and parameters give no finite posterior: figures of
// a Config are beyond all bounds.
var errNotFinite = errors.New("figures too large or too small for a finite fit")

// rubickRow is one configuration and its measured step time.
type rubickRow struct {
	Config spec.Config `json:"config"`
	Sec    float64     `json:"sec"`
}

// rubickPosterior is what is known of one job type's parameters given its
// rows: the maximum a posteriori and, linearised there, everything a
// prediction with its variance needs.
type rubickPosterior struct {
	split bool
	mean  rubickVec // logarithms
	e     rubickVec // natural
	loss  float64   // negative log posterior density, up to a constant

	terms    []rubickTerms
	residual cholesky    // of the residual covariance K between rows
	weight   []float64   // K⁻¹·(ln measured - ln T)
	jac      []rubickVec // d ln T / d ln e of each row
	precise  cholesky    // of the posterior precision of the logarithms
	half     float64     // half a 90 % interval of ln T in believed standard deviations
}

// rubickBelief returns the prior means and standard deviations of the
// parameters' logarithms for a job type. Parameters that scale assumed figures
// may be off by the factor e² the figure may be, those of assumed links by e.
func rubickBelief(t *rubickTerms) (mean, sd rubickVec) {
	for i, p := range rubickPriors {
		mean[i], sd[i] = math.Log(p.median), p.sd
	}
	vague := func(param int, assumed bool, least float64) {
		if assumed {
			sd[param] = max(sd[param], least)
		}
	}
	vague(rbCompute, t.guess.work, 2)
	vague(rbIntra, t.guess.intra, 1)
	vague(rbInter, t.guess.inter, 1)
	vague(rbIntra, t.guess.params, 2)
	vague(rbInter, t.guess.params, 2)
	return mean, sd
}

// rubickMaxLog bounds the logarithms of parameters: beyond, step times and
// figures do not belong to the same world, and predictions leave float64.
const rubickMaxLog = 100

// newRubickSearch prepares a fit to rows, at least one.
func newRubickSearch(rows []rubickRow, split bool) (*rubickSearch, error) {
	n := len(rows)
	s := &rubickSearch{logSec: make([]float64, n), resid: make([]float64, n)}
	s.split, s.terms, s.jac = split, make([]rubickTerms, n), make([]rubickVec, n)
	for i := range rows {
		s.terms[i] = newRubickTerms(&rows[i].Config, split)
		s.logSec[i] = math.Log(rows[i].Sec)
	}
	var ok bool
	s.residual, ok = newCholesky(n, func(i, j int) float64 {
		return rubickCovariance(&s.terms[i], &s.terms[j], i == j)
	})
	if !ok {
		return nil, errNotFinite
	}
	s.prior, s.sd = rubickBelief(&s.terms[0])
	return s, nil
}

// fitRubickRows finds the posterior mode for rows, at least one: Levenberg-
// Marquardt from the prior and from the prior moved to the rows' level; the
// better end wins.
func fitRubickRows(rows []rubickRow, split bool) (*rubickPosterior, error) {
	s, err := newRubickSearch(rows, split)
	if err != nil {
		return nil, err
	}
	best := s.climb(s.prior)
	if other := s.climb(s.levelled()); other.loss < best.loss {
		best = other
	}
	if math.IsNaN(best.loss) || math.IsInf(best.loss, 0) {
		return nil, errNotFinite
	}
	for _, v := range best.at {
		if math.Abs(v) > rubickMaxLog {
			return nil, errNotFinite
		}
	}
	if err := s.conclude(best.at); err != nil {
		return nil, err
	}
	return &s.rubickPosterior, nil
}

// rubickCovariance is that of the residuals of two rows, ln T.
func rubickCovariance(a, b *rubickTerms, same bool) float64 {
	if same {
		return rubickAmplitude*rubickAmplitude + rubickNoise*rubickNoise
	}
	return rubickAmplitude * rubickAmplitude * a.likeness(b)
}

// rubickSearch is one fit in progress.
type rubickSearch struct {
	rubickPosterior
	prior, sd rubickVec
	logSec    []float64
	resid     []float64 // scratch: whitened residuals
}

// rubickPoint is where a search ended.
type rubickPoint struct {
	at   rubickVec
	loss float64
}

// levelled returns the prior with compute moved so that rows are met on
// average.
func (s *rubickSearch) levelled() rubickVec {
	at, e, sum := s.prior, s.prior.natural(), 0.0
	for i := range s.terms {
		sum += s.logSec[i] - math.Log(s.terms[i].seconds(&e, nil))
	}
	at[rbCompute] += sum / float64(len(s.terms))
	return at
}

// lossAt returns the negative log posterior density at v and leaves the whitened
// residuals in s.resid; jac too, if wanted.
func (s *rubickSearch) lossAt(v rubickVec, wantJac bool) float64 {
	e := v.natural()
	for i := range s.terms {
		var grad *rubickVec
		if wantJac {
			grad = &s.jac[i]
		}
		s.resid[i] = math.Log(s.terms[i].seconds(&e, grad)) - s.logSec[i]
	}
	s.residual.forward(s.resid)
	sum := dot(s.resid, s.resid)
	for i := range v {
		d := (v[i] - s.prior[i]) / s.sd[i]
		sum += d * d
	}
	return sum / 2
}

// curvature returns the gradient and the Gauss-Newton precision at v.
func (s *rubickSearch) curvature(v rubickVec) (grad rubickVec, precision [rbN]rubickVec) {
	s.lossAt(v, true)
	white := make([][]float64, rbN) // by parameter: whitened Jacobian column
	for a := range white {
		col := make([]float64, len(s.terms))
		for i := range col {
			col[i] = s.jac[i][a]
		}
		s.residual.forward(col)
		white[a] = col
	}
	for a := range white {
		w := 1 / (s.sd[a] * s.sd[a])
		grad[a] = (v[a]-s.prior[a])*w + dot(white[a], s.resid)
		for b := 0; b <= a; b++ {
			precision[a][b] = dot(white[a], white[b])
		}
		precision[a][a] += w
	}
	return grad, precision
}

// climb runs Levenberg-Marquardt (Marquardt 1963) from v.
func (s *rubickSearch) climb(v rubickVec) rubickPoint {
	const maxSteps, tolerance = 200, 1e-12
	damping, loss := 1e-2, s.lossAt(v, false)
	for range maxSteps {
		grad, precision := s.curvature(v)
		next, lower := v, math.Inf(1)
		for damping < 1e12 {
			var ok bool
			if next, ok = marquardtStep(v, grad, &precision, damping); ok {
				if lower = s.lossAt(next, false); lower < loss {
					break
				}
			}
			damping *= 4
		}
		if !(lower < loss*(1-tolerance)) {
			break
		}
		v, loss, damping = next, lower, max(damping/5, 1e-9)
	}
	return rubickPoint{v, loss}
}

// marquardtStep solves (precision + damping·diagonal)·d = grad and returns v-d.
func marquardtStep(v, grad rubickVec, precision *[rbN]rubickVec, damping float64) (rubickVec, bool) {
	c, ok := newCholesky(rbN, func(i, j int) float64 {
		if i == j {
			return precision[i][i] * (1 + damping)
		}
		return precision[i][j]
	})
	if !ok {
		return v, false
	}
	c.solve(grad[:])
	for i := range v {
		v[i] -= grad[i]
	}
	return v, true
}

// scatterRows is how many rows the belief in rubickAmplitude and rubickNoise is
// worth when rows scatter more or less than that: their variance has a scaled
// inverse chi-squared prior of so many degrees of freedom, which makes
// predictions Student's t (Gelman et al., Bayesian Data Analysis, 3rd ed. 2013,
// section 14.2).
const scatterRows = 8

// conclude works out everything predictions need, at the mode v.
func (s *rubickSearch) conclude(v rubickVec) error {
	_, precision := s.curvature(v)
	s.mean, s.e = v, v.natural()
	s.loss = s.lossAt(v, true)
	var ok bool
	s.precise, ok = newCholesky(rbN, func(i, j int) float64 { return precision[i][j] })
	if !ok {
		return errNotFinite
	}
	s.weight = make([]float64, len(s.terms))
	for i := range s.terms {
		s.weight[i] = s.logSec[i] - math.Log(s.terms[i].seconds(&s.e, nil))
	}
	s.residual.solve(s.weight)
	s.half = rubickHalf(len(s.terms), s.loss)
	return nil
}

// rubickHalf returns half a 90 % interval of ln T in believed standard
// deviations, after a fit to so many rows that ended at loss.
func rubickHalf(rows int, loss float64) float64 {
	freedom := scatterRows + float64(rows)
	return math.Sqrt((scatterRows+2*loss)/freedom) * studentQuantile(freedom)
}

func studentQuantile(freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.95)
}

// expectedHalf returns what rubickHalf, half after so many rows, is expected to
// be after one more. With ν degrees of freedom now the next residual is
// Student's t of ν, in units of the present scatter s, and the scatter becomes
//
//	s·√((ν+t²)/(ν+1)), on average s·√(ν/(ν+1))·B(½, (ν-1)/2)/B(½, ν/2)
func expectedHalf(half float64, rows int) float64 {
	freedom := scatterRows + float64(rows)
	scatter := math.Sqrt(freedom/(freedom+1)) * mathext.Beta(0.5, (freedom-1)/2) / mathext.Beta(0.5, freedom/2)
	return half * scatter * studentQuantile(freedom+1) / studentQuantile(freedom)
}

// rubickMaxRows bounds the rows of one fit: what is left over is smoothed at a
// cost that grows with their cube, and more add nothing to ten parameters.
const rubickMaxRows = 128

// predict returns ln T of a configuration and half the width of its 90 %
// interval, noise of one run included.
func (p *rubickPosterior) predict(t *rubickTerms) (logSec, half float64) {
	var grad rubickVec
	logSec = math.Log(t.seconds(&p.e, &grad))
	var buf [rubickMaxRows]float64
	like := buf[:len(p.terms)]
	for i := range like {
		like[i] = rubickAmplitude * rubickAmplitude * t.likeness(&p.terms[i])
	}
	logSec += dot(like, p.weight)
	p.residual.forward(like)
	gain := dot(like, like) // variance of the residual that the rows take away
	p.residual.backward(like)
	for i, g := range like {
		for a := range grad {
			grad[a] -= g * p.jac[i][a]
		}
	}
	p.precise.forward(grad[:])
	v := dot(grad[:], grad[:]) + rubickAmplitude*rubickAmplitude - gain + rubickNoise*rubickNoise
	return logSec, p.half * math.Sqrt(v)
}
