package family

import (
	"context"
	"fmt"
	"math"
)

// residual is a Gaussian process over what the physics leaves unexplained in
// log time. Near measured configurations it corrects the prediction; far from
// all of them it returns to the physics:
//
//	k(a, b) = A²·exp(-d(a, b))     d = Σ w·|difference of log2| + Σ w·[differs]
//
// Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning",
// 2006, section 2.2 and equation 4.18 (exponential kernel).
type residual struct {
	at     []point
	e, sd  []float64
	kernel kernel
	trend  []float64 // lower triangle of a covariance besides the process's; nil = none

	// Of up to residualRows rows:
	alpha []float64 // (K + noise)⁻¹ · residuals
	chol  cholesky  // of K + noise
}

// kernel is the process's: A, and what distances are multiplied by.
type kernel struct {
	SD    float64 `json:"sd"`
	Steep float64 `json:"steep"`
}

const (
	residualSD    = 0.10 // A where rows say little: what physics leaves unexplained
	residualNoise = 0.04 // what differs between repeats
)

// The kernels tried: a grid, around the most believed one.
var (
	kernelSDs    = [...]float64{0.025, 0.035, 0.05, 0.07, 0.10, 0.14, 0.20, 0.28}
	kernelSteeps = [...]float64{0.35, 0.6, 1, 1.7}
)

// kernelCell is a place in the grid.
type kernelCell struct{ sd, steep int }

func (c kernelCell) valid() bool {
	return c.sd >= 0 && c.sd < len(kernelSDs) && c.steep >= 0 && c.steep < len(kernelSteeps)
}

func (c kernelCell) kernel() kernel { return kernel{kernelSDs[c.sd], kernelSteeps[c.steep]} }

// belief is how likely k is before any row, as a logarithm: a factor of two off
// the usual is one standard deviation.
func (k kernel) belief() float64 {
	a, b := math.Log2(k.SD/residualSD), math.Log2(k.Steep)
	return -(a*a + b*b) / 2
}

// numWeights are the distances of a factor of two in each of numNames.
var numWeights = [numDims]float64{0.1, 0.1, 0.15, 0.25, 0.2, 0.3, 0.2, 0.15, 0.25, 0.1, 0.3, 0.3, 0.2, 0.3, 0.15}

// catWeights are the distances of another of catNames.
var catWeights = [catDims]float64{0.4, 0.5, 2, 0.5, 0.5, 1, 0.5}

// distance is d of two configurations.
func (a *point) distance(b *point) float64 {
	d := 0.0
	for i, w := range numWeights {
		d += w * math.Abs(a.num[i]-b.num[i])
	}
	for i, w := range catWeights {
		if a.cat[i] != b.cat[i] {
			d += w
		}
	}
	return d
}

func (k kernel) covariance(correlation float64) float64 { return k.SD * k.SD * correlation }

func (k kernel) at(distance float64) float64 {
	return k.covariance(math.Exp(-k.Steep * distance))
}

// choose fits r with the kernel of the greatest marginal likelihood times belief
// (equation 5.8 there), alike being the correlations of its rows: it climbs the
// grid of kernels from the most believed one. The error wraps errNotFinite if
// the rows are no numbers.
func (r *residual) choose(ctx context.Context, alike func(steep float64) []float64) error {
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
			r.kernel = to.kernel()
			if score, ok := r.fit(alike(r.kernel.Steep)); ok && score+r.kernel.belief() > best {
				best, at = score+r.kernel.belief(), to
			}
		}
		if at == from {
			break
		}
	}
	r.kernel = at.kernel()
	if _, ok := r.fit(alike(r.kernel.Steep)); !ok || math.IsInf(best, -1) {
		return fmt.Errorf("hybrid: residuals of %d rows: %w", len(r.e), errNotFinite)
	}
	return nil
}

// withKernel fits the process to residuals e, log measured minus log physics; sd
// is the standard deviation of each beyond that of repeats, 0 for rows as good as
// others. It reports false if they are no numbers.
func withKernel(at []point, e, sd []float64, k kernel) (r *residual, ok bool) {
	r = &residual{at: at, e: e, sd: sd, kernel: k}
	if r.many() {
		return r, true
	}
	_, ok = r.fit(correlations(at)(k.Steep))
	return r, ok
}

// correlations returns a function that gives the lower triangle of exp(-steep·d)
// between points, row by row, n x n.
func correlations(at []point) func(steep float64) []float64 {
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
func distances(at []point) []float64 {
	n := len(at)
	d := make([]float64, n*n)
	for i := range at {
		for j := range at[:i] {
			d[i*n+j] = at[i].distance(&at[j])
		}
	}
	return d
}

// fit solves for alpha and returns the log marginal likelihood, but for a
// constant. alike is the lower triangle of correlations.
func (r *residual) fit(alike []float64) (score float64, ok bool) {
	n := len(r.at)
	ok = r.chol.factor(n, func(i, j int) (v float64) {
		if r.trend != nil {
			v = r.trend[i*n+j]
		}
		if i == j {
			return v + r.kernel.SD*r.kernel.SD + residualNoise*residualNoise + r.sd[i]*r.sd[i]
		}
		return v + r.kernel.covariance(alike[i*n+j])
	})
	if !ok {
		return 0, false
	}
	r.alpha = append(r.alpha[:0], r.e...)
	r.chol.solve(r.alpha)
	return -dot(r.e, r.alpha)/2 - r.chol.logDet()/2, true
}

// predict returns the mean and the variance of the residual at p.
func (r *residual) predict(p *point) (mean, variance float64) {
	if len(r.at) == 0 {
		return 0, r.kernel.SD * r.kernel.SD
	}
	if r.many() {
		return r.around(p, -1).predict(p)
	}
	k := make([]float64, len(r.at))
	for i := range r.at {
		k[i] = r.kernel.at(p.distance(&r.at[i]))
	}
	mean = dot(k, r.alpha)
	r.chol.forward(k)
	return mean, max(r.kernel.SD*r.kernel.SD-dot(k, k), 0)
}

// leftOut returns what each row's residual would be predicted wrong by without
// it, and the standard deviation of that (equations 5.10 to 5.12 there).
func (r *residual) leftOut(ctx context.Context) (e, sd []float64, err error) {
	if r.many() {
		return r.leftOutNear(ctx)
	}
	for i, v := range r.chol.inverseDiagonal() {
		e, sd = append(e, r.alpha[i]/v), append(sd, math.Sqrt(1/v))
	}
	return e, sd, nil
}
