package family

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
)

// joint is what rows say of the constants and of the residual process together,
// the physics being linear around the mode of a fit without the process:
//
//	y - f(μ) ~ N(0, JΣJᵀ + K + noise)
//
//	y     ln of the measured times
//	f, J  physics, and its derivatives by the constants at the mode
//	μ, Σ  mean and covariance of the constants before any row
//	K     covariance of the residual process
//
// Rows that are off alike, for they are of one model or plan, then count for
// little more than one of them, and the constants are left where fits to
// independent rows would have bent them. Source: Rasmussen and Williams 2006,
// section 2.7 (explicit basis functions) and equations 5.8 to 5.12.
type joint struct {
	rows  []int // it is of, in the fit
	prior bayes.Gaussian
	jac   *mat.Dense // n x constants
	gain  *mat.Dense // JΣ
	all   residual   // of y - f(μ), physics in its covariance
}

// Rows further than jointWild standard deviations from what the others say of
// them are given the noise that makes them so far, in jointRounds rounds.
const (
	jointWild   = 2.5
	jointRounds = 2
)

// jointRows is how many rows a joint is of at most, evenly spread: all of
// thousands take minutes and tell no more.
const jointRows = 500

// newJoint conditions prior on rows at the given places; post is the fit without
// the process.
func newJoint(ctx context.Context, prior bayes.Gaussian, post *bayes.Posterior, at []point) (*joint, error) {
	n := min(len(at), jointRows)
	j := &joint{prior: prior, jac: mat.NewDense(n, len(prior.Mean), nil), gain: &mat.Dense{}}
	j.all = residual{e: make([]float64, n), sd: make([]float64, n), trend: make([]float64, n*n)}
	moved := make([]float64, len(prior.Mean))
	floats.SubTo(moved, post.Mean, prior.Mean)
	for i := range n {
		row := i * len(at) / n
		j.rows, j.all.at = append(j.rows, row), append(j.all.at, at[row])
		j.jac.SetRow(i, post.Gradient(row))
		j.all.e[i] = post.Residual[row] + dot(post.Gradient(row), moved)
	}
	j.gain.Mul(j.jac, prior.Cov)
	for a := range n {
		for b := range a + 1 {
			j.all.trend[a*n+b] = dot(j.gain.RawRowView(a), j.jac.RawRowView(b))
		}
	}
	return j, j.solve(ctx)
}

// solve chooses the kernel, and finds the wild rows.
func (j *joint) solve(ctx context.Context) error {
	alike := correlations(j.all.at)
	for range jointRounds {
		if err := j.all.choose(ctx, alike); err != nil {
			return err
		}
		if err := j.widen(ctx); err != nil {
			return err
		}
	}
	return j.all.choose(ctx, alike)
}

// widen gives noise to wild rows.
func (j *joint) widen(ctx context.Context) error {
	e, sd, err := j.all.leftOut(ctx)
	for i := range e {
		if z := math.Abs(e[i]) / sd[i] / jointWild; z > 1 {
			j.all.sd[i] = math.Hypot(j.all.sd[i], sd[i]*math.Sqrt(z*z-1))
		}
	}
	return err
}

// constants returns what is known of the constants.
func (j *joint) constants() (bayes.Gaussian, error) {
	n, p := j.jac.Dims()
	mean, less := append([]float64(nil), j.prior.Mean...), mat.NewDense(p, n, nil)
	for i := range n {
		floats.AddScaled(mean, j.all.alpha[i], j.gain.RawRowView(i))
	}
	for k := range p {
		column := less.RawRowView(k)
		mat.Col(column, k, j.gain)
		j.all.chol.forward(column)
	}
	cov := mat.NewSymDense(p, nil)
	cov.SymRankK(j.prior.Cov, -1, less)
	for k, v := range mean {
		if !(cov.At(k, k) > 0) || math.IsNaN(v) || math.IsInf(v, 0) {
			return bayes.Gaussian{}, fmt.Errorf("hybrid: constant %d has mean %g and variance %g: %w", k, v, cov.At(k, k), errNotFinite)
		}
	}
	return bayes.Gaussian{Mean: mean, Cov: cov}, nil
}
