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

// kernels are those tried, each with its share of belief before any row, as a
// logarithm: a factor of two off the usual is one standard deviation.
var kernels = func() (out []kernel) {
	for _, sd := range []float64{0.05, 0.07, 0.10, 0.14, 0.20, 0.28} {
		for _, steep := range []float64{0.35, 0.6, 1, 1.7} {
			out = append(out, kernel{sd, steep})
		}
	}
	return out
}()

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

// kernelRows is how many rows choose the kernel at most, evenly spread: trying
// them all on thousands takes minutes and tells no more.
const kernelRows = 500

// newResidual fits the process to residuals e, log measured minus log physics,
// with the kernel of the greatest marginal likelihood times belief (equation
// 5.8 there); sd is the standard deviation of each beyond that of repeats, 0
// for rows as good as others. The error wraps errNotFinite if they are no
// numbers.
func newResidual(ctx context.Context, at []point, e, sd []float64) (*residual, error) {
	some := &residual{}
	n := min(len(at), kernelRows)
	for k := range n {
		i := k * len(at) / n
		some.at, some.e, some.sd = append(some.at, at[i]), append(some.e, e[i]), append(some.sd, sd[i])
	}
	alike := correlations(some.at)
	best, most := kernel{}, math.Inf(-1)
	for _, k := range kernels {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some.kernel = k
		if score, ok := some.fit(alike(k.Steep)); ok && score+k.belief() > most {
			best, most = k, score+k.belief()
		}
	}
	if r, ok := withKernel(at, e, sd, best); ok && best.SD > 0 {
		return r, nil
	}
	return nil, fmt.Errorf("hybrid: residuals of %d rows: %w", len(e), errNotFinite)
}

// withKernel is newResidual with a kernel chosen before.
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
	ok = r.chol.factor(n, func(i, j int) float64 {
		if i == j {
			return r.kernel.SD*r.kernel.SD + residualNoise*residualNoise + r.sd[i]*r.sd[i]
		}
		return r.kernel.covariance(alike[i*n+j])
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
