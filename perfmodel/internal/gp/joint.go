package gp

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
)

// Joint is the joint posterior of the constants and of the residual process. The physics is linearised at the
// mode of a fit without the process:
//
//	y - f(μ) ~ N(0, JΣJᵀ + K + noise)
//
//	y     ln of the measured times
//	f, J  physics, and its derivatives by the constants at the mode
//	μ, Σ  mean and covariance of the constants before any row
//	K     covariance of the residual process
//
// Rows with a common error, such as those of one model or plan, then count for little more than one row, and
// affect the constants less than independent rows would. Source: Rasmussen and Williams 2006, section 2.7
// (explicit basis functions) and equations 5.8 to 5.12.
type Joint struct {
	Rows    []int // indices of the rows it was fitted to
	prior   bayes.Gaussian
	jac     *mat.Dense // n x constants
	gain    *mat.Dense // JΣ
	Process Process    // process of y - f(μ); its covariance includes JΣJᵀ
}

// maxJointRows is the largest number of rows of a Joint; more are thinned evenly. Thousands would take minutes
// and add no information.
const maxJointRows = 500

// NewJoint conditions prior on rows at the given points; post is the fit without the process. noise is an additional
// standard deviation of each row; nil = none. repeats add information on the noise of single runs. The error is that of
// ctx, or wraps perfmodel.ErrNotFinite.
func NewJoint(ctx context.Context, prior bayes.Gaussian, post *bayes.Posterior, at []Point, noise []float64, repeats []Repeats, h *Hyper) (*Joint, error) {
	n := min(len(at), maxJointRows)
	j := &Joint{prior: prior, jac: mat.NewDense(n, len(prior.Mean), nil), gain: &mat.Dense{}}
	j.Process = Process{Off: make([]float64, n), ExtraSD: make([]float64, n), trend: make([]float64, n*n), repeats: repeats}
	moved := make([]float64, len(prior.Mean))
	floats.SubTo(moved, post.Mean, prior.Mean)
	for i := range n {
		row := i * len(at) / n
		j.Rows, j.Process.At = append(j.Rows, row), append(j.Process.At, at[row])
		j.jac.SetRow(i, post.Gradient(row))
		if noise != nil {
			j.Process.ExtraSD[i] = noise[row]
		}
		j.Process.Off[i] = post.Residual[row] + Dot(post.Gradient(row), moved)
	}
	j.gain.Mul(j.jac, prior.Cov)
	for a := range n {
		for b := range a + 1 {
			j.Process.trend[a*n+b] = Dot(j.gain.RawRowView(a), j.jac.RawRowView(b))
		}
	}
	return j, j.Process.choose(ctx, h)
}

// Constants returns the posterior of the constants.
func (j *Joint) Constants() (bayes.Gaussian, error) {
	n, p := j.jac.Dims()
	mean, less := append([]float64(nil), j.prior.Mean...), mat.NewDense(p, n, nil)
	for i := range n {
		floats.AddScaled(mean, j.Process.alpha[i], j.gain.RawRowView(i))
	}
	for k := range p {
		column := less.RawRowView(k)
		mat.Col(column, k, j.gain)
		j.Process.Chol.Forward(column)
	}
	cov := mat.NewSymDense(p, nil)
	cov.SymRankK(j.prior.Cov, -1, less)
	for k, v := range mean {
		if !(cov.At(k, k) > 0) || math.IsNaN(v) || math.IsInf(v, 0) {
			return bayes.Gaussian{}, fmt.Errorf("gp: constant %d has mean %g and variance %g: %w", k, v, cov.At(k, k), perfmodel.ErrNotFinite)
		}
	}
	return bayes.Gaussian{Mean: mean, Cov: cov}, nil
}

// Whiten returns the covariances of the fitted rows with values that have the derivatives jac by the constants and
// residuals at the given points, whitened. The posterior covariance of the values is jac·Σ·jacᵀ + K less its square.
func (j *Joint) Whiten(at []Point, jac *mat.Dense) blas64.General {
	var trend mat.Dense
	trend.Mul(jac, j.gain.T())
	return j.Process.Chol.Whiten(len(at), len(j.Rows), func(k, row int) float64 {
		return trend.At(k, row) + j.Process.Kernel.Covariance(&at[k], &j.Process.At[row])
	})
}
