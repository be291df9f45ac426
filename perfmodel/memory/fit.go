package memory

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"
)

// usableShare is the share of a device's nominal memory that a program can use. nvidia-smi prints 79.3 of 80
// GiB on an A100, 95.0 of 96 GiB on an H100, 31.7 of 32 GiB on a V100.
const usableShare = 0.99

// Sure is the smallest probability of fitting with which a plan counts as fitting. It is high because running
// out of memory costs a job its start, while a rejected plan costs only some speed. It is a round number,
// chosen with published runs in view, including runs that went out of memory.
const Sure = 0.95

var sureQuantile = distuv.UnitNormal.Quantile(Sure)

// Budget returns the largest estimate, in bytes, that counts as fitting a device of memBytes (its nominal
// memory), if log(measured / estimated) has the standard deviation logSD:
//
//	estimate <= 0.99 memBytes exp(-z logSD),   z = 1.645, the 95 % quantile
//
// At this estimate FitProbability equals Sure. All decisions whether a plan fits use this rule. An estimate
// without a spread (logSD 0) is taken as exact.
func Budget(memBytes, logSD float64) float64 {
	return memBytes * usableShare * math.Exp(-logSD*sureQuantile)
}

// Misfit describes, for messages, a plan that needs more than budget, the Budget of a device of memBytes.
func Misfit(bytes, budget, memBytes float64) string {
	return string(appendMisfit(make([]byte, 0, 96), bytes, budget, memBytes))
}

func appendMisfit(out []byte, bytes, budget, memBytes float64) []byte {
	out = appendGiB(append(out, "needs "...), bytes)
	out = appendGiB(append(out, " of "...), memBytes)
	if bytes > memBytes {
		return out
	}
	out = appendGiB(append(out, ", but only up to "...), budget)
	return append(out, surely...)
}

func appendGiB(out []byte, v float64) []byte {
	return append(appendTenths(out, v/GiB), " GiB"...)
}

// appendTenths appends v with one decimal, as strconv does, in a quarter of its time. What is so close to the middle of
// two tenths that the product with 10 may be rounded across is left to strconv.
func appendTenths(out []byte, v float64) []byte {
	tenths := math.Floor(10*v + 0.5)
	if !(v > 0 && tenths < 1e9) || math.Abs(10*v+0.5-math.Round(10*v+0.5)) < 1e-6 {
		return strconv.AppendFloat(out, v, 'f', 1, 64)
	}
	n := int64(tenths)
	return append(append(strconv.AppendInt(out, n/10, 10), '.'), byte('0'+n%10))
}

var surely = fmt.Sprintf(" fit with %.0f %% probability", 100*Sure)

// Fits reports whether a device of memBytes holds the peak with a probability of at least Sure, see Budget.
func (b Breakdown) Fits(memBytes float64) bool {
	return memBytes > 0 && b.Total() <= Budget(memBytes, b.LogSD)
}

// FitProbability returns the probability that a device of memBytes (its nominal memory) holds the peak. The
// peak is log-normal around Total with LogSD, or exactly Total if LogSD is 0.
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

// Quantile returns the number of bytes that the peak does not exceed with probability q, in (0, 1).
func (b Breakdown) Quantile(q float64) float64 {
	return b.Total() * math.Exp(b.LogSD*distuv.UnitNormal.Quantile(q))
}
