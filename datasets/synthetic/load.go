package synthetic

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// SetLoad sets the arrival rate at which jobs need load device-seconds per second and device of a
// cluster. A device that runs jobs k times as fast as their run times counts k times. The load is
// the expected one of the options. Sizes of jobs with plans are not known before they are drawn;
// their load is that of the jobs drawn.
func (o *Options) SetLoad(load, devices float64) error {
	if !(load > 0 && devices > 0) || math.IsInf(load, 0) || math.IsInf(devices, 0) {
		return fmt.Errorf("synthetic: load %g on %g devices, both must be positive and finite", load, devices)
	}
	if o.AtOnce {
		return fmt.Errorf("synthetic: jobs that arrive at once have no load: leave it out")
	}
	if o.Plan != nil {
		o.Load, o.LoadDevices = load, devices
		return o.Validate()
	}
	o.PerHour = load * devices * 3600 / o.meanWork()
	return o.Validate()
}

// meanWork returns the expected device-seconds of a job.
func (o Options) meanWork() float64 {
	o = o.withDefaults()
	work, shares := 0.0, 0.0
	for _, s := range o.Sizes {
		work += s.Share * float64(s.Devices) * o.meanSec(s)
		shares += s.Share
	}
	return work / shares
}

// meanSec returns the expected run time of a job of a size. Between two quantiles
// a and b the logarithm is uniform, of mean (b-a)/ln(b/a).
func (o Options) meanSec(s Size) float64 {
	knots := s.Seconds
	if knots == nil {
		knots = o.Seconds
	}
	if knots == nil {
		return o.meanDuration()
	}
	sum := 0.0
	for k := range len(knots) - 1 {
		a, b := knots[k], knots[k+1]
		mean := a
		if b > a {
			mean = (b - a) / math.Log(b/a)
		}
		sum += mean
	}
	return sum / float64(len(knots)-1)
}

// meanDuration returns the expectation of a run time X of distribution Durations, between 1 s and
// m seconds: with P the probability of X > x it is 1 plus the integral of P from 1 to m. For a
// log-normal X that is
//
//	P(X<1) + m P(X>m) + exp(μ+σ²/2) (Φ((ln m-μ)/σ-σ) - Φ(-μ/σ-σ))
func (o Options) meanDuration() float64 {
	m := o.MaxSec
	switch o.Durations {
	case Pareto:
		least := o.MedianSec * math.Pow(2, -1/o.Alpha)
		from := math.Max(least, 1) // every X is above least
		return math.Min(from, m) + math.Max(0, least/(o.Alpha-1)*(math.Pow(least/from, o.Alpha-1)-math.Pow(least/math.Max(m, from), o.Alpha-1)))
	case Uniform:
		most := 2 * o.MedianSec
		to := math.Max(math.Min(m, most), 1)
		return math.Min(1+(to-1)-(to*to-1)/(2*most), m)
	}
	mu, z := math.Log(o.MedianSec), distuv.UnitNormal
	low, high := -mu/o.Sigma, (math.Log(m)-mu)/o.Sigma
	return z.CDF(low) + m*z.Survival(high) + math.Exp(mu+o.Sigma*o.Sigma/2)*(z.CDF(high-o.Sigma)-z.CDF(low-o.Sigma))
}
