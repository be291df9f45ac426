package memory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// usableShare is the share of a device's nominal memory that a program can use:
// 79.3 of 80 GiB on an A100, 95.0 of 96 GiB on an H100, 31.7 of 32 GiB on a V100,
// as nvidia-smi prints.
const usableShare = 0.99

// Sure is the least probability with which a plan counts as fitting: running out
// of memory costs a job its start, a rejected plan only some speed. It is a round
// figure, chosen with published runs in view, among them runs that ran out of
// memory.
const Sure = 0.95

var sureQuantile = distuv.UnitNormal.Quantile(Sure)

// Budget returns the largest estimate, in bytes, that counts as fitting a device
// of memBytes, its nominal memory, where log(measured / estimated) has the
// standard deviation logSD. It is the one rule of fitting:
//
//	estimate <= 0.99 memBytes exp(-z logSD),   z = 1.645, the 95 % quantile
//
// which is a FitProbability of Sure. An estimate without a spread (logSD 0) is
// taken as exact.
func Budget(memBytes, logSD float64) float64 {
	return memBytes * usableShare * math.Exp(-logSD*sureQuantile)
}

// Misfit describes the need of a plan whose estimate exceeds budget, the Budget of
// a device of memBytes.
func Misfit(bytes, budget, memBytes float64) string {
	if bytes > memBytes {
		return fmt.Sprintf("needs %.1f GiB of %.1f GiB", bytes/GiB, memBytes/GiB)
	}
	return fmt.Sprintf("needs %.1f GiB of %.1f GiB, where up to %.1f GiB are %.0f %% sure to fit", bytes/GiB, memBytes/GiB, budget/GiB, 100*Sure)
}

// Fits reports whether a device of memBytes holds the peak with probability
// Sure at least, see Budget.
func (b Breakdown) Fits(memBytes float64) bool {
	return memBytes > 0 && b.Total() <= Budget(memBytes, b.LogSD)
}

// FitProbability returns the probability that a device of memBytes, its nominal memory,
// holds the peak, in [0, 1]: log-normal around Total with LogSD; a step at
// Total where LogSD is 0.
func (b Breakdown) FitProbability(memBytes float64) float64 {
	total, limit := b.Total(), memBytes*usableShare
	switch {
	case !(limit > 0):
		return 0
	case total <= 0:
		return 1
	case b.LogSD > 0:
		return 0.5 * math.Erfc(math.Log(total/limit)/(b.LogSD*math.Sqrt2))
	case total <= limit:
		return 1
	}
	return 0
}

// Quantile returns the bytes the peak is below with probability q, in (0, 1).
func (b Breakdown) Quantile(q float64) float64 {
	return b.Total() * math.Exp(b.LogSD*distuv.UnitNormal.Quantile(q))
}
