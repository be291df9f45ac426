package memory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// usableShare is what a program can have of a device's nominal memory: 79.3 of
// 80 GiB on an A100, 95.0 of 96 GiB on an H100, 31.7 of 32 GiB on a V100, as
// nvidia-smi prints.
const usableShare = 0.99

// Sure is the probability from which on a plan is said to fit: running out of
// memory costs a job its start, a plan not taken some of its speed. It is a round
// figure and was chosen with published runs in view, those that ran out of
// memory among them.
const Sure = 0.95

var sureQuantile = distuv.UnitNormal.Quantile(Sure)

// Budget returns the most, in bytes, that a plan may be estimated to need and be
// said to fit a device of memBytes, its nominal memory, where the logarithm of
// measured over estimated has the standard deviation logSD. It is the one rule
// of what fits:
//
//	estimate <= 0.99 memBytes exp(-z logSD),   z = 1.645, the 95 % quantile
//
// which is a FitProbability of Sure. A figure that is given without a spread
// (logSD 0) is taken at its word.
func Budget(memBytes, logSD float64) float64 {
	return memBytes * usableShare * math.Exp(-logSD*sureQuantile)
}

// Misfit says of a plan estimated to need more than budget, which is Budget of a
// device of memBytes, what it needs.
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

// FitProbability returns how likely a device of memBytes, its nominal memory,
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
