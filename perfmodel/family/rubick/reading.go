package rubick

import (
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/pacer-ml/pacer/perfmodel/internal/design"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
)

// residuals is the posterior of the residual of ln T at candidates, given rows. It is a Gaussian process that
// does not depend on the parameters.
type residuals struct {
	targets []int          // indices of the candidates with intervals that count
	white   blas64.General // covariance of candidates with rows, whitened by rows
	cov     []float64      // of candidate c with target i, at c·len(targets)+i
	own     []float64      // variance of each candidate
}

// newResiduals conditions on rows, possibly none; whiten is the Cholesky factor of their residual covariance.
func newResiduals(candidates []configTerms, targets []int, rows []configTerms, whiten gp.Cholesky) *residuals {
	const variance = amplitude * amplitude
	n, m := len(candidates), len(rows)
	r := &residuals{targets: targets, white: gp.NewMatrix(n, m), cov: make([]float64, n*len(targets)), own: make([]float64, n)}
	for c := range candidates {
		row := r.white.Data[c*m : (c+1)*m]
		for j := range rows {
			row[j] = variance * candidates[c].likeness(&rows[j])
		}
		if m > 0 {
			whiten.Forward(row)
		}
		r.own[c] = variance - gp.Dot(row, row)
		for i, t := range targets {
			r.cov[c*len(targets)+i] = variance * candidates[c].likeness(&candidates[t])
		}
	}
	if m > 0 {
		gp.AddProduct(-1, r.white, gp.PickRows(r.white, targets), r.cov)
	}
	return r
}

// reading is one interpretation of the plans of pipelines (see fitBest), with the posterior of the parameters
// under it.
type reading struct {
	terms  []configTerms // of the candidates
	post   *posterior    // posterior given the rows; nil = no rows
	mode   vec           // of the parameters' logarithms
	sd     vec           // of the prior
	weight float64       // probability that this reading is right
}

// newReading returns a reading with weight 1. A nil post means the prior.
func newReading(terms []configTerms, post *posterior) *reading {
	r := &reading{terms: terms, post: post, weight: 1}
	r.mode, r.sd = priorOf(&terms[0])
	if post != nil {
		r.mode = post.mean
	}
	return r
}

// draw returns a draw of the logarithms of the parameters.
func (r *reading) draw(rng *rand.Rand) vec {
	var z vec
	for a := range z {
		z[a] = rng.NormFloat64()
	}
	if r.post != nil {
		r.post.precise.Backward(z[:])
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

// view linearises the formula at the parameters with logarithms at.
func (r *reading) view(res *residuals, at vec) design.View {
	e := at.natural()
	steep := r.whitenedRows(&e)
	precise, ok := gp.NewCholesky(rbN, func(i, j int) float64 {
		v := gp.Dot(steep.Data[i*steep.Cols:(i+1)*steep.Cols], steep.Data[j*steep.Cols:(j+1)*steep.Cols])
		if i == j {
			v += 1 / (r.sd[i] * r.sd[i])
		}
		return v
	})
	v := design.View{Cov: slices.Clone(res.cov), Own: slices.Clone(res.own), Target: make([]float64, len(res.targets))}
	if ok { // if not ok, the parameters are not finite, and only the residual counts
		spread := r.spread(res, &e, steep, precise)
		for c := range v.Own {
			p := spread.Data[c*rbN : (c+1)*rbN]
			v.Own[c] += gp.Dot(p, p)
		}
		gp.AddProduct(1, spread, gp.PickRows(spread, res.targets), v.Cov)
	}
	for i, t := range res.targets {
		v.Target[i] = v.Own[t]
	}
	return v
}

// whitenedRows returns d ln T / d ln e of the rows, one line per parameter, whitened by the residual
// covariance.
func (r *reading) whitenedRows(e *vec) blas64.General {
	if r.post == nil {
		return gp.NewMatrix(rbN, 0)
	}
	m := len(r.post.terms)
	out := gp.NewMatrix(rbN, m)
	var grad vec
	for j := range r.post.terms {
		r.post.terms[j].seconds(e, &grad)
		for a, g := range grad {
			out.Data[a*m+j] = g
		}
	}
	for a := range rbN {
		r.post.residual.Forward(out.Data[a*m : (a+1)*m])
	}
	return out
}

// spread returns, for each candidate, the factor p in the part p·pᵀ of its covariances that comes from the
// parameters.
func (r *reading) spread(res *residuals, e *vec, steep blas64.General, precise gp.Cholesky) blas64.General {
	out := gp.NewMatrix(len(r.terms), rbN)
	var grad vec
	for c := range r.terms {
		r.terms[c].seconds(e, &grad)
		copy(out.Data[c*rbN:], grad[:])
	}
	if steep.Cols > 0 {
		gp.AddProduct(-1, res.white, steep, out.Data)
	}
	for c := range r.terms {
		precise.Forward(out.Data[c*rbN : (c+1)*rbN])
	}
	return out
}
