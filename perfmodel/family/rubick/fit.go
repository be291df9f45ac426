package rubick

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/design"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// row is one configuration and its measured step time.
type row struct {
	Config spec.Config `json:"config"`
	Sec    float64     `json:"sec"`
}

// posterior is that of one job type's parameters: the maximum a posteriori and,
// linearised there, all that a prediction with its variance needs.
type posterior struct {
	split bool
	mean  vec     // logarithms
	e     vec     // natural
	loss  float64 // negative log posterior density, up to a constant

	terms    []configTerms
	residual gp.Cholesky // of the residual covariance K between rows
	weight   []float64   // K⁻¹·(ln measured - ln T)
	jac      []vec       // d ln T / d ln e of each row
	precise  gp.Cholesky // of the posterior precision of the logarithms
	half     float64     // half a 90 % interval of ln T in posterior standard deviations
}

// beliefOf returns the prior means and standard deviations of the
// parameters' logarithms for a job type. Parameters that scale assumed figures
// may be off by the factor e² the figure may be, those of assumed links by e.
func beliefOf(t *configTerms) (mean, sd vec) {
	for i, p := range priors {
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

// maxLog bounds the logarithms of parameters. Beyond it step times and figures are
// inconsistent, and predictions overflow float64.
const maxLog = 100

// newSearch prepares a fit to rows, at least one.
func newSearch(rows []row, split bool) (*search, error) {
	n := len(rows)
	s := &search{logSec: make([]float64, n), resid: make([]float64, n)}
	s.split, s.terms, s.jac = split, make([]configTerms, n), make([]vec, n)
	for i := range rows {
		s.terms[i] = newTerms(&rows[i].Config, split)
		s.logSec[i] = math.Log(rows[i].Sec)
	}
	var ok bool
	s.residual, ok = gp.NewCholesky(n, func(i, j int) float64 {
		return covarianceOf(&s.terms[i], &s.terms[j], i == j)
	})
	if !ok {
		return nil, perfmodel.ErrNotFinite
	}
	s.prior, s.sd = beliefOf(&s.terms[0])
	return s, nil
}

// fitRows finds the posterior mode for rows, at least one: Levenberg-
// Marquardt from the prior and from the prior moved to the rows' level; the
// better end wins.
func fitRows(ctx context.Context, rows []row, split bool) (*posterior, error) {
	s, err := newSearch(rows, split)
	if err != nil {
		return nil, err
	}
	best, err := s.climb(ctx, s.prior)
	if err != nil {
		return nil, err
	}
	other, err := s.climb(ctx, s.levelled())
	if err != nil {
		return nil, err
	}
	if other.loss < best.loss {
		best = other
	}
	if math.IsNaN(best.loss) || math.IsInf(best.loss, 0) {
		return nil, perfmodel.ErrNotFinite
	}
	for _, v := range best.at {
		if math.Abs(v) > maxLog {
			return nil, perfmodel.ErrNotFinite
		}
	}
	if err := s.conclude(best.at); err != nil {
		return nil, err
	}
	return &s.posterior, nil
}

// covarianceOf is that of the residuals of two rows, ln T.
func covarianceOf(a, b *configTerms, same bool) float64 {
	if same {
		return amplitude*amplitude + design.RunNoise*design.RunNoise
	}
	return amplitude * amplitude * a.likeness(b)
}

// search is one fit in progress.
type search struct {
	posterior
	prior, sd vec
	logSec    []float64
	resid     []float64 // scratch: whitened residuals
}

// searchEnd is where a search ended.
type searchEnd struct {
	at   vec
	loss float64
}

// levelled returns the prior with compute moved so that rows are met on
// average.
func (s *search) levelled() vec {
	at, e, sum := s.prior, s.prior.natural(), 0.0
	for i := range s.terms {
		sum += s.logSec[i] - math.Log(s.terms[i].seconds(&e, nil))
	}
	at[rbCompute] += sum / float64(len(s.terms))
	return at
}

// lossAt returns the negative log posterior density at v and leaves the whitened
// residuals in s.resid; jac too, if wanted.
func (s *search) lossAt(v vec, wantJac bool) float64 {
	e := v.natural()
	for i := range s.terms {
		var grad *vec
		if wantJac {
			grad = &s.jac[i]
		}
		s.resid[i] = math.Log(s.terms[i].seconds(&e, grad)) - s.logSec[i]
	}
	s.residual.Forward(s.resid)
	sum := gp.Dot(s.resid, s.resid)
	for i := range v {
		d := (v[i] - s.prior[i]) / s.sd[i]
		sum += d * d
	}
	return sum / 2
}

// curvature returns the gradient and the Gauss-Newton precision at v.
func (s *search) curvature(v vec) (grad vec, precision [rbN]vec) {
	s.lossAt(v, true)
	white := make([][]float64, rbN) // by parameter: whitened Jacobian column
	for a := range white {
		col := make([]float64, len(s.terms))
		for i := range col {
			col[i] = s.jac[i][a]
		}
		s.residual.Forward(col)
		white[a] = col
	}
	for a := range white {
		w := 1 / (s.sd[a] * s.sd[a])
		grad[a] = (v[a]-s.prior[a])*w + gp.Dot(white[a], s.resid)
		for b := 0; b <= a; b++ {
			precision[a][b] = gp.Dot(white[a], white[b])
		}
		precision[a][a] += w
	}
	return grad, precision
}

// climb runs Levenberg-Marquardt (Marquardt 1963) from v. The error is ctx's.
func (s *search) climb(ctx context.Context, v vec) (searchEnd, error) {
	const maxSteps, tolerance = 200, 1e-12
	damping, loss := 1e-2, s.lossAt(v, false)
	for range maxSteps {
		if err := ctx.Err(); err != nil {
			return searchEnd{}, err
		}
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
	return searchEnd{v, loss}, nil
}

// marquardtStep solves (precision + damping·diagonal)·d = grad and returns v-d.
func marquardtStep(v, grad vec, precision *[rbN]vec, damping float64) (vec, bool) {
	c, ok := gp.NewCholesky(rbN, func(i, j int) float64 {
		if i == j {
			return precision[i][i] * (1 + damping)
		}
		return precision[i][j]
	})
	if !ok {
		return v, false
	}
	c.Solve(grad[:])
	for i := range v {
		v[i] -= grad[i]
	}
	return v, true
}

// scatterRows is the weight, in rows, of the prior of the residual variance from
// amplitude and RunNoise: the variance has a scaled inverse chi-squared prior of
// so many degrees of freedom, which makes predictions Student's t (Gelman et al., Bayesian Data Analysis, 3rd ed. 2013,
// section 14.2).
const scatterRows = 8

// conclude computes all that predictions need, at the mode v.
func (s *search) conclude(v vec) error {
	_, precision := s.curvature(v)
	s.mean, s.e = v, v.natural()
	s.loss = s.lossAt(v, true)
	var ok bool
	s.precise, ok = gp.NewCholesky(rbN, func(i, j int) float64 { return precision[i][j] })
	if !ok {
		return perfmodel.ErrNotFinite
	}
	s.weight = make([]float64, len(s.terms))
	for i := range s.terms {
		s.weight[i] = s.logSec[i] - math.Log(s.terms[i].seconds(&s.e, nil))
	}
	s.residual.Solve(s.weight)
	s.half = halfWidthOf(len(s.terms), s.loss)
	return nil
}

// halfWidthOf returns half a 90 % interval of ln T in posterior standard
// deviations, after a fit to rows rows that ended at loss.
func halfWidthOf(rows int, loss float64) float64 {
	freedom := scatterRows + float64(rows)
	return math.Sqrt((scatterRows+2*loss)/freedom) * studentQuantile(freedom)
}

func studentQuantile(freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.95)
}

// expectedHalf returns what halfWidthOf, half after so many rows, is expected to
// be after one more. With ν degrees of freedom now the next residual is
// Student's t of ν, in units of the present scatter s, and the scatter becomes
//
//	s·√((ν+t²)/(ν+1)), on average s·√(ν/(ν+1))·B(½, (ν-1)/2)/B(½, ν/2)
func expectedHalf(half float64, rows int) float64 {
	freedom := scatterRows + float64(rows)
	scatter := math.Sqrt(freedom/(freedom+1)) * mathext.Beta(0.5, (freedom-1)/2) / mathext.Beta(0.5, freedom/2)
	return half * scatter * studentQuantile(freedom+1) / studentQuantile(freedom)
}

// maxRows bounds the rows of one fit: smoothing the residuals costs their cube, and
// more rows hardly improve ten parameters.
const maxRows = 128

// predict returns ln T of a configuration and half the width of its 90 %
// interval, noise of one run included.
func (p *posterior) predict(t *configTerms) (logSec, half float64) {
	var grad vec
	logSec = math.Log(t.seconds(&p.e, &grad))
	var buf [maxRows]float64
	like := buf[:len(p.terms)]
	for i := range like {
		like[i] = amplitude * amplitude * t.likeness(&p.terms[i])
	}
	logSec += gp.Dot(like, p.weight)
	p.residual.Forward(like)
	gain := gp.Dot(like, like) // variance of the residual that the rows take away
	p.residual.Backward(like)
	for i, g := range like {
		for a := range grad {
			grad[a] -= g * p.jac[i][a]
		}
	}
	p.precise.Forward(grad[:])
	v := gp.Dot(grad[:], grad[:]) + amplitude*amplitude - gain + design.RunNoise*design.RunNoise
	return logSec, p.half * math.Sqrt(v)
}
