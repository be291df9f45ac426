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

// posterior is the posterior of one job type's parameters: the maximum a posteriori, and the linearisation
// there that predictions and their variance need.
type posterior struct {
	split bool
	mean  vec     // logarithms
	e     vec     // parameters themselves
	loss  float64 // negative log posterior density, up to a constant

	terms    []configTerms
	residual gp.Cholesky // residual covariance K between rows
	weight   []float64   // K⁻¹·(ln measured - ln T)
	jac      []vec       // d ln T / d ln e of each row
	precise  gp.Cholesky // posterior precision of the logarithms
	half     float64     // ratio of half a 90 % interval of ln T to the posterior standard deviation
}

// priorOf returns the prior means and standard deviations of the parameters' logarithms for a job type. If a
// parameter scales an assumed value, its standard deviation is at least the uncertainty of that value: a factor
// of e² for work and parameters, of e for links.
func priorOf(t *configTerms) (mean, sd vec) {
	for i, p := range priors {
		mean[i], sd[i] = math.Log(p.median), p.sd
	}
	vague := func(param int, assumed bool, least float64) {
		if assumed {
			sd[param] = max(sd[param], least)
		}
	}
	vague(rbCompute, t.assumed.work, 2)
	vague(rbIntra, t.assumed.intra, 1)
	vague(rbInter, t.assumed.inter, 1)
	vague(rbIntra, t.assumed.params, 2)
	vague(rbInter, t.assumed.params, 2)
	return mean, sd
}

// maxLog limits the logarithms of parameters. Beyond it, step times contradict the configurations, and
// predictions overflow float64.
const maxLog = 100

// newSearch prepares a fit to at least one row.
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
	s.prior, s.sd = priorOf(&s.terms[0])
	return s, nil
}

// fitRows finds the posterior mode for at least one row. It runs Levenberg-Marquardt from the prior, and from
// the prior shifted to the rows' level, and keeps the better result.
func fitRows(ctx context.Context, rows []row, split bool) (*posterior, error) {
	s, err := newSearch(rows, split)
	if err != nil {
		return nil, err
	}
	best, err := s.findMode(ctx, s.prior)
	if err != nil {
		return nil, err
	}
	other, err := s.findMode(ctx, s.shiftedPrior())
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
	if err := s.complete(best.at); err != nil {
		return nil, err
	}
	return &s.posterior, nil
}

// covarianceOf returns the covariance of the residuals of ln T of two rows.
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
	resid     []float64 // scratch space for whitened residuals
}

// searchEnd is the result of one search.
type searchEnd struct {
	at   vec
	loss float64
}

// shiftedPrior returns the prior with the compute parameter shifted so that the mean residual is 0.
func (s *search) shiftedPrior() vec {
	at, e, sum := s.prior, s.prior.natural(), 0.0
	for i := range s.terms {
		sum += s.logSec[i] - math.Log(s.terms[i].seconds(&e, nil))
	}
	at[rbCompute] += sum / float64(len(s.terms))
	return at
}

// lossAt returns the negative log posterior density at v and leaves the whitened residuals in s.resid. With
// wantJac it fills s.jac too.
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

// findMode runs Levenberg-Marquardt (Marquardt 1963) from v. The error is that of ctx.
func (s *search) findMode(ctx context.Context, v vec) (searchEnd, error) {
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

// scatterRows is the weight, in rows, of the prior of the residual variance (amplitude and RunNoise). The
// variance has a scaled inverse chi-squared prior with scatterRows degrees of freedom, so predictions are
// Student's t (Gelman et al., Bayesian Data Analysis, 3rd ed. 2013, section 14.2).
const scatterRows = 8

// complete computes the fields that predictions need, at the mode v.
func (s *search) complete(v vec) error {
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

// halfWidthOf returns half a 90 % interval of ln T in posterior standard deviations, after a fit to the given
// number of rows that ended at loss.
func halfWidthOf(rows int, loss float64) float64 {
	freedom := scatterRows + float64(rows)
	return math.Sqrt((scatterRows+2*loss)/freedom) * studentQuantile(freedom)
}

func studentQuantile(freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.95)
}

// expectedHalf returns the expected result of halfWidthOf after one more row, given half after rows rows. With
// ν degrees of freedom now, the next residual is Student's t with ν degrees of freedom, in units of the present
// scatter s, and the scatter becomes
//
//	s·√((ν+t²)/(ν+1)), on average s·√(ν/(ν+1))·B(½, (ν-1)/2)/B(½, ν/2)
func expectedHalf(half float64, rows int) float64 {
	freedom := scatterRows + float64(rows)
	scatter := math.Sqrt(freedom/(freedom+1)) * mathext.Beta(0.5, (freedom-1)/2) / mathext.Beta(0.5, freedom/2)
	return half * scatter * studentQuantile(freedom+1) / studentQuantile(freedom)
}

// maxRows limits the rows of one fit. The cost is cubic in the rows, and more rows hardly improve ten
// parameters.
const maxRows = 128

// predict returns ln T of a configuration and half the width of its 90 % interval, including the noise of one
// run.
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
	gain := gp.Dot(like, like) // residual variance that the rows explain
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
