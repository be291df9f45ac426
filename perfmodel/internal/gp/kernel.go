package gp

import (
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Kernel is the covariance of the residuals of two configurations:
//
//	k(a, b) = f(a)·f(b)·Spread²·exp(-Σ weight·|difference|) + [same stack and device]·Site²
//
// f is Routed for models with experts, else 1. The second term is an error of all step times of a site, such as on
// throttled or shared devices.
type Kernel struct {
	Spread  float64 `json:"spread"`
	Site    float64 `json:"site"`
	Routed  float64 `json:"routed"`
	Noise   float64 `json:"noise"` // standard deviation of repeats
	Weights Weights `json:"weights"`
}

// usual is the kernel that training starts at. The weights are those of devices, nodes, dp, tp, pp, cp, ep, vp, micro-batch,
// accumulation, sequence, hidden width, layers, zero, shard, experts, width of experts, queries per key, state-space
// layers; model, accelerator, framework, precision, recompute, offload, schedule, release.
var usual = Kernel{Spread: 0.1, Site: 0.05, Routed: 1.5, Noise: RepeatSD,
	Weights: Weights{0.1, 0.1, 0.15, 0.25, 0.2, 0.3, 0.2, 0.15, 0.25, 0.1, 0.3, 0.3, 0.2, 0.3, 0.15, 0.1, 0.1, 0.2, 0.1,
		0.4, 0.5, 2, 0.5, 0.5, 1, 0.5, 0.2}}

// RepeatSD is the usual standard deviation of repeats.
const RepeatSD = 0.04

// Kernels have hypers parameters: scalars, then weights.
const (
	scalars = 4
	hypers  = scalars + dims
)

// logs returns the logarithms of k's parameters.
func (k *Kernel) logs() []float64 {
	x := slices.Concat([]float64{k.Spread, k.Site, k.Routed, k.Noise}, k.Weights[:])
	for i := range x {
		x[i] = math.Log(x[i])
	}
	return x
}

// kernelOf is the inverse of logs.
func kernelOf(x []float64) (k Kernel) {
	v := make([]float64, hypers)
	for i := range v {
		v[i] = math.Exp(x[i])
	}
	k.Spread, k.Site, k.Routed, k.Noise = v[0], v[1], v[2], v[3]
	copy(k.Weights[:], v[scalars:])
	return k
}

// Valid reports whether a fit may have k.
func (k *Kernel) Valid() bool {
	for _, x := range k.logs() {
		if !(math.Abs(x) < 50) {
			return false
		}
	}
	return true
}

// factor returns f(a).
func (k *Kernel) factor(a *Point) float64 {
	if a.routed() {
		return k.Routed
	}
	return 1
}

// Covariance returns the covariance of the residuals at a and b.
func (k *Kernel) Covariance(a, b *Point) float64 {
	v := k.factor(a) * k.factor(b) * k.Spread * k.Spread * math.Exp(-k.Weights.distance(a, b))
	if a.sameSite(b) {
		v += k.Site * k.Site
	}
	return v
}

// Variance returns the variance of the residual at a.
func (k *Kernel) Variance(a *Point) float64 {
	f := k.factor(a) * k.Spread
	return f*f + k.Site*k.Site
}

// Hyper is the distribution of the kernels of sites before any row: log-normal and independent.
type Hyper struct {
	Mean Kernel          `json:"mean"`
	SD   [hypers]float64 `json:"sd"` // of logarithms
}

// Untaught returns the Hyper without training.
func Untaught() *Hyper { return &Hyper{Mean: usual, SD: every(siteSD)} }

// Standard deviations of logarithms of parameters: of those of a site, and of those that sites share before training.
const siteSD, sharedSD = 0.7, 2

// heldSD is that of the distance between stacks, which is not learnt: few sources have rows of two stacks, from the same
// machine, but users compare stacks across machines.
const heldSD = 0.1

// HalfOver returns half the 90 % interval of a residual at a site with n rows over its standard deviation. The standard
// deviation is uncertain: its logarithm has the variance
//
//	s² = 1/(1/siteSD² + 2n)
//
// because a normal observation has the information 2 about it. To second order in s, the quantile q of a normal
// distribution grows by the factor exp((q²-1)/2·s²).
func HalfOver(n int) float64 {
	const q = stats.Normal90
	return q * math.Exp((q*q-1)/2/(1/(siteSD*siteSD)+2*float64(n)))
}

func every(sd float64) (out [hypers]float64) {
	for i := range out {
		out[i] = sd
	}
	return out
}
