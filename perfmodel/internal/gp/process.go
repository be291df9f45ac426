package gp

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/pacer-ml/pacer/perfmodel"
)

// Process is a Gaussian process over the residual of log time, the error that the physics leaves. Near measured
// configurations it corrects the prediction; far from all of them it returns to the physics.
//
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning",
// 2006, section 2.2 and equation 4.18 (exponential kernel).
type Process struct {
	At           []Point
	Off, ExtraSD []float64
	Kernel       Kernel
	trend        []float64 // lower triangle of an additional covariance; nil = none
	physics      *Physics  // of the rows; nil = unknown
	repeats      []Repeats // of rows, for the choice of the kernel
	// With up to ExactRows rows:
	alpha []float64 // (K + noise)⁻¹ · residuals
	Chol  Cholesky  // of K + noise
	// By site: (K + noise)⁻¹ · loads of the site's rows, one line per effect.
	answers map[int]blas64.General
	vary    []int // dimensions in which rows differ; only with more rows, and while a kernel is chosen
}

// choose fits r with the best kernel under h, and additional noise of outliers. The error is that of ctx, or wraps
// perfmodel.ErrNotFinite.
func (r *Process) choose(ctx context.Context, h *Hyper) error {
	r.Kernel = h.Mean
	some := r.thinned(maxSearchRows)
	if err := newSearch(h, some).robust(ctx, siteSteps); err != nil {
		return err
	}
	if some == r {
		return nil
	}
	r.Kernel = some.Kernel
	for range outlierRounds {
		if err := r.fit(); err != nil {
			return err
		}
		if err := r.widen(ctx); err != nil {
			return err
		}
	}
	return r.fit()
}

// thinned returns r, or n evenly spaced rows of it if it has more.
func (r *Process) thinned(n int) *Process {
	all := len(r.At)
	if all <= n {
		return r
	}
	out := &Process{Kernel: r.Kernel, repeats: r.repeats}
	if r.trend != nil {
		out.trend = make([]float64, n*n)
	}
	at := func(i int) int { return i * all / n }
	for i := range n {
		k := at(i)
		out.At, out.Off, out.ExtraSD = append(out.At, r.At[k]), append(out.Off, r.Off[k]), append(out.ExtraSD, r.ExtraSD[k])
		for j := 0; j <= i && r.trend != nil; j++ {
			out.trend[i*n+j] = r.trend[k*all+at(j)]
		}
	}
	return out
}

// Rows further than outlierSDs standard deviations from their left-out prediction get additional noise that
// explains the distance, in outlierRounds rounds.
const (
	outlierSDs    = 2.5
	outlierRounds = 2
)

// widen adds noise to outliers.
func (r *Process) widen(ctx context.Context) error {
	e, sd, err := r.LeftOut(ctx)
	for i := range e {
		if z := math.Abs(e[i]) / sd[i] / outlierSDs; z > 1 {
			r.ExtraSD[i] = math.Hypot(r.ExtraSD[i], sd[i]*math.Sqrt(z*z-1))
		}
	}
	return err
}

// NewProcess fits the process to residuals e, log measured minus log physics. sd is the standard deviation of
// each in addition to that of repeats; 0 for ordinary rows. The error wraps perfmodel.ErrNotFinite. It keeps its
// arguments.
func NewProcess(at []Point, e, sd []float64, k Kernel) (*Process, error) {
	r := &Process{At: at, Off: e, ExtraSD: sd, Kernel: k}
	if r.Large() {
		r.vary = varying(at)
		return r, nil
	}
	return r, r.fit()
}

// fit solves for alpha. The error wraps perfmodel.ErrNotFinite.
func (r *Process) fit() error {
	return r.fitBy(func(i, j int) float64 { return r.Kernel.Covariance(&r.At[i], &r.At[j]) })
}

// fitBy is fit with the covariances of pairs of rows.
func (r *Process) fitBy(covariance func(i, j int) float64) error {
	n := len(r.At)
	ok := r.Chol.factor(n, func(i, j int) (v float64) {
		if r.trend != nil {
			v = r.trend[i*n+j]
		}
		if i == j {
			return v + r.Kernel.Variance(&r.At[i]) + r.Kernel.Noise*r.Kernel.Noise + r.ExtraSD[i]*r.ExtraSD[i]
		}
		return v + covariance(i, j)
	})
	r.alpha = append(r.alpha[:0], r.Off...)
	if ok {
		r.Chol.Solve(r.alpha)
	}
	if e := r.evidence(); !ok || math.IsNaN(e) || math.IsInf(e, 0) {
		return fmt.Errorf("gp: residuals of %d rows: %w", n, perfmodel.ErrNotFinite)
	}
	return nil
}

// Trend returns the covariance of rows i and j in addition to that of the kernel, such as of the constants.
func (r *Process) Trend(i, j int) float64 {
	if r.trend == nil {
		return 0
	}
	return r.trend[max(i, j)*len(r.At)+min(i, j)]
}

// evidence returns the log marginal likelihood of rows and repeats, up to a constant.
func (r *Process) evidence() float64 {
	sum := -Dot(r.Off, r.alpha)/2 - r.Chol.logDet()/2
	for i := range r.repeats {
		sum += r.repeats[i].logDensity(r.Kernel.Noise)
	}
	return sum
}

// Predict returns the mean and the variance of the residual at p.
func (r *Process) Predict(p *Point) (mean, variance float64) {
	if r.Large() {
		return r.around(p, -1).Predict(p)
	}
	return r.given(p, r.covariances(p))
}

// covariances returns those of p with the rows.
func (r *Process) covariances(p *Point) []float64 {
	k := make([]float64, len(r.At))
	for i := range r.At {
		k[i] = r.Kernel.Covariance(p, &r.At[i])
	}
	return k
}

// given is Predict with the covariances k of p with the rows, which it overwrites.
func (r *Process) given(p *Point, k []float64) (mean, variance float64) {
	if len(k) == 0 {
		return 0, r.Kernel.Variance(p)
	}
	mean = Dot(k, r.alpha)
	r.Chol.Forward(k)
	return mean, max(r.Kernel.Variance(p)-Dot(k, k), 0)
}

// LeftOut returns the error of predicting each row's residual from the other rows, and the standard deviation
// of that error (equations 5.10 to 5.12 there). The error returned is that of ctx.
func (r *Process) LeftOut(ctx context.Context) (e, sd []float64, err error) {
	if r.Large() {
		return r.leftOutNear(ctx)
	}
	for i, v := range r.Chol.InverseDiagonal() {
		e, sd = append(e, r.alpha[i]/v), append(sd, math.Sqrt(1/v))
	}
	return e, sd, nil
}

// LeastMean returns a lower bound of the mean of the process. It uses that covariances are in [0, most].
func (r *Process) LeastMean() float64 {
	if r == nil {
		return 0
	}
	sum := 0.0
	for _, a := range r.alpha {
		sum += min(a, 0)
	}
	k := &r.Kernel
	f := max(k.Routed, 1) * k.Spread
	return (f*f + k.Site*k.Site) * sum
}
