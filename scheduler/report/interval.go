package report

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a mean and its two-sided confidence interval. Lo and Hi are
// undefined for fewer than two values, all three for none.
type Interval struct {
	Mean Number `json:"mean"`
	Lo   Number `json:"lo"`
	Hi   Number `json:"hi"`
}

// StudentT returns the mean of independent values, and the confidence interval of
// their expectation by Student's t:
//
//	mean ± t(n-1, (1+confidence)/2) * s / sqrt(n)
//
// with s the sample standard deviation. It is exact for normal values. Applied to
// differences of pairs, it is the paired interval. confidence is in (0, 1);
// undefined values are left out.
//
// Source: Student, "The probable error of a mean", Biometrika 6(1), 1908.
func StudentT(values []float64, confidence float64) Interval {
	var x []float64
	for _, v := range values {
		if Number(v).Defined() {
			x = append(x, v)
		}
	}
	if len(x) == 0 {
		return Interval{Undefined(), Undefined(), Undefined()}
	}
	mean, s := stat.MeanStdDev(x, nil)
	return around(mean, s/math.Sqrt(float64(len(x))), len(x), confidence)
}

// RatioT returns mean(b)/mean(a) of pairs (a[i], b[i]) with the interval of the
// ratio estimator:
//
//	ratio ± t(n-1, (1+confidence)/2) * s(b - ratio*a) / (mean(a) * sqrt(n))
//
// with s the sample standard deviation of the residuals b - ratio*a. a and b have
// the same length, confidence is in (0, 1). The interval is approximate; it is
// better the less mean(a) varies. The result is undefined without pairs, or if
// mean(a) is not positive.
//
// Source: Cochran, Sampling Techniques, 3rd edition, 1977, chapter 6.
func RatioT(a, b []float64, confidence float64) Interval {
	meanA := stat.Mean(a, nil)
	if len(a) == 0 || !(meanA > 0) {
		return Interval{Undefined(), Undefined(), Undefined()}
	}
	ratio := stat.Mean(b, nil) / meanA
	residuals := make([]float64, len(a))
	for i := range a {
		residuals[i] = b[i] - ratio*a[i]
	}
	return around(ratio, stat.StdDev(residuals, nil)/(meanA*math.Sqrt(float64(len(a)))), len(a), confidence)
}

// GeometricT returns the geometric mean of positive values with the interval of
// StudentT for their logarithms. Values that are not positive are left out.
func GeometricT(values []float64, confidence float64) Interval {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.NaN()
		if v > 0 {
			logs[i] = math.Log(v)
		}
	}
	i := StudentT(logs, confidence)
	exp := func(n Number) Number { return Number(math.Exp(float64(n))) } // undefined stays undefined
	return Interval{exp(i.Mean), exp(i.Lo), exp(i.Hi)}
}

// around returns the interval of a mean of n values with its standard error.
func around(mean, stdErr float64, n int, confidence float64) Interval {
	if n < 2 {
		return Interval{Number(mean), Undefined(), Undefined()}
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile((1 + confidence) / 2)
	return Interval{Number(mean), Number(mean - t*stdErr), Number(mean + t*stdErr)}
}

// HalfWidth is half the width of the interval, undefined if a bound is.
func (i Interval) HalfWidth() Number {
	if !i.Lo.Defined() || !i.Hi.Defined() {
		return Undefined()
	}
	return (i.Hi - i.Lo) / 2
}
