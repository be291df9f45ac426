package gp

import (
	"context"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
)

// Process is a Gaussian process over the residual of log time, the error that the physics leaves. Near measured
// configurations it corrects the prediction; far from all of them it returns to the physics:
//
//	k(a, b) = A²·exp(-d(a, b))     d = Σ w·|difference of log2| + Σ w·[differs]
//
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning",
// 2006, section 2.2 and equation 4.18 (exponential kernel).
type Process struct {
	At           []Point
	Off, ExtraSD []float64
	Kernel       Kernel
	trend        []float64 // lower triangle of an additional covariance; nil = none

	// With up to ExactRows rows:
	alpha []float64 // (K + noise)⁻¹ · residuals
	Chol  Cholesky  // of K + noise
}

// Kernel holds A, and a factor on distances.
type Kernel struct {
	SD    float64 `json:"sd"`
	Steep float64 `json:"steep"`
}

const (
	PriorSD  = 0.10 // prior of A: standard deviation of the residual
	RepeatSD = 0.04 // standard deviation of repeats
)

// The grid of kernels, around the most probable one a priori.
var (
	kernelSDs    = [...]float64{0.025, 0.035, 0.05, 0.07, 0.10, 0.14, 0.20, 0.28}
	kernelSteeps = [...]float64{0.35, 0.6, 1, 1.7}
)

// kernelCell is a position in the grid.
type kernelCell struct{ sd, steep int }

func (c kernelCell) valid() bool {
	return c.sd >= 0 && c.sd < len(kernelSDs) && c.steep >= 0 && c.steep < len(kernelSteeps)
}

func (c kernelCell) kernel() Kernel { return Kernel{kernelSDs[c.sd], kernelSteeps[c.steep]} }

// logPrior returns the log prior density of k, up to a constant. A factor of two from the usual values is one
// standard deviation.
func (k Kernel) logPrior() float64 {
	a, b := math.Log2(k.SD/PriorSD), math.Log2(k.Steep)
	return -(a*a + b*b) / 2
}

func (k Kernel) covariance(correlation float64) float64 { return k.SD * k.SD * correlation }

// At returns the covariance of two points at a distance.
func (k Kernel) At(distance float64) float64 {
	return k.covariance(math.Exp(-k.Steep * distance))
}

// choose fits r with the kernel of the highest posterior density (prior times the marginal likelihood of
// equation 5.8 there). alike returns the correlations of its rows. The search moves on the grid of kernels from
// the most probable one a priori. The error is that of ctx, or wraps perfmodel.ErrNotFinite if a residual is
// not finite.
func (r *Process) choose(ctx context.Context, alike func(steep float64) []float64) error {
	best, at := math.Inf(-1), kernelCell{len(kernelSDs) / 2, len(kernelSteeps) / 2}
	tried := map[kernelCell]bool{}
	for from := at; ; from = at {
		for _, step := range []kernelCell{{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
			to := kernelCell{from.sd + step.sd, from.steep + step.steep}
			if !to.valid() || tried[to] {
				continue
			}
			tried[to] = true
			if err := ctx.Err(); err != nil {
				return err
			}
			r.Kernel = to.kernel()
			if score, ok := r.fit(alike(r.Kernel.Steep)); ok && score+r.Kernel.logPrior() > best {
				best, at = score+r.Kernel.logPrior(), to
			}
		}
		if at == from {
			break
		}
	}
	r.Kernel = at.kernel()
	if _, ok := r.fit(alike(r.Kernel.Steep)); !ok || math.IsInf(best, -1) {
		return fmt.Errorf("gp: residuals of %d rows: %w", len(r.Off), perfmodel.ErrNotFinite)
	}
	return nil
}

// NewProcess fits the process to residuals e, log measured minus log physics. sd is the standard deviation of
// each in addition to that of repeats; 0 for ordinary rows. It reports false if a residual is not finite. It
// keeps its arguments.
func NewProcess(at []Point, e, sd []float64, k Kernel) (r *Process, ok bool) {
	r = &Process{At: at, Off: e, ExtraSD: sd, Kernel: k}
	if r.Large() {
		return r, true
	}
	_, ok = r.fit(correlations(at)(k.Steep))
	return r, ok
}

// correlations returns a function from steep to the lower triangle of exp(-steep·d) between points, row by row,
// n x n.
func correlations(at []Point) func(steep float64) []float64 {
	d, known := distances(at), map[float64][]float64{}
	return func(steep float64) []float64 {
		c, ok := known[steep]
		if !ok {
			c = make([]float64, len(d))
			for i := range at {
				for j := i * len(at); j < i*len(at)+i; j++ {
					c[j] = math.Exp(-steep * d[j])
				}
			}
			known[steep] = c
		}
		return c
	}
}

// distances returns the lower triangle of distances, row by row, n x n.
func distances(at []Point) []float64 {
	n := len(at)
	d := make([]float64, n*n)
	for i := range at {
		for j := range at[:i] {
			d[i*n+j] = at[i].Distance(&at[j])
		}
	}
	return d
}

// fit solves for alpha and returns the log marginal likelihood, up to a constant. alike is the lower triangle
// of correlations.
func (r *Process) fit(alike []float64) (score float64, ok bool) {
	n := len(r.At)
	ok = r.Chol.factor(n, func(i, j int) (v float64) {
		if r.trend != nil {
			v = r.trend[i*n+j]
		}
		if i == j {
			return v + r.Kernel.SD*r.Kernel.SD + RepeatSD*RepeatSD + r.ExtraSD[i]*r.ExtraSD[i]
		}
		return v + r.Kernel.covariance(alike[i*n+j])
	})
	if !ok {
		return 0, false
	}
	r.alpha = append(r.alpha[:0], r.Off...)
	r.Chol.Solve(r.alpha)
	return -Dot(r.Off, r.alpha)/2 - r.Chol.logDet()/2, true
}

// Predict returns the mean and the variance of the residual at p.
func (r *Process) Predict(p *Point) (mean, variance float64) {
	if len(r.At) == 0 {
		return 0, r.Kernel.SD * r.Kernel.SD
	}
	if r.Large() {
		return r.around(p, -1).Predict(p)
	}
	k := make([]float64, len(r.At))
	for i := range r.At {
		k[i] = r.Kernel.At(p.Distance(&r.At[i]))
	}
	mean = Dot(k, r.alpha)
	r.Chol.Forward(k)
	return mean, max(r.Kernel.SD*r.Kernel.SD-Dot(k, k), 0)
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

// LeastMean returns a lower bound of the mean of the process. It uses that correlations are in [0, 1].
func (r *Process) LeastMean() float64 {
	if r == nil {
		return 0
	}
	sum := 0.0
	for _, a := range r.alpha {
		sum += min(a, 0)
	}
	return r.Kernel.SD * r.Kernel.SD * sum
}

// Solved returns a process with a computed factor: r itself, or ExactRows evenly spaced rows of r if it has
// more. For nil it is the prior.
func (r *Process) Solved() *Process {
	unseen := &Process{Kernel: Kernel{SD: PriorSD, Steep: 1}}
	if r == nil {
		return unseen
	}
	if !r.Large() {
		return r
	}
	var some Process
	for k := range ExactRows {
		i := k * len(r.At) / ExactRows
		some.At, some.Off, some.ExtraSD = append(some.At, r.At[i]), append(some.Off, r.Off[i]), append(some.ExtraSD, r.ExtraSD[i])
	}
	if fitted, ok := NewProcess(some.At, some.Off, some.ExtraSD, r.Kernel); ok {
		return fitted
	}
	return unseen
}
