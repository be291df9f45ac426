package synthetic

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// SetLoad sets the arrival rate at which jobs need load device-seconds per second and device of a
// cluster. A device that runs jobs k times as fast as their run times counts k times.
func (o *Options) SetLoad(load, devices float64) error {
	if !(load > 0 && devices > 0) || math.IsInf(load, 0) || math.IsInf(devices, 0) {
		return fmt.Errorf("synthetic: load %g on %g devices, both must be positive and finite", load, devices)
	}
	if o.Plan != nil {
		return fmt.Errorf("synthetic: the sizes of jobs that get plans are not known before they are made, so no load can be set")
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
// a and b the logarithm is uniform, of mean (b-a)/ln(b/a). Of a log-normal time X
// between 1 s and m seconds it is
//
//	P(X<1) + m P(X>m) + exp(μ+σ²/2) (Φ((ln m-μ)/σ-σ) - Φ(-μ/σ-σ))
func (o Options) meanSec(s Size) float64 {
	if s.Seconds == nil {
		mu, z := math.Log(o.MedianSec), distuv.UnitNormal
		low, high := -mu/o.Sigma, (math.Log(o.MaxSec)-mu)/o.Sigma
		return z.CDF(low) + o.MaxSec*z.Survival(high) + math.Exp(mu+o.Sigma*o.Sigma/2)*(z.CDF(high-o.Sigma)-z.CDF(low-o.Sigma))
	}
	sum := 0.0
	for k := range len(s.Seconds) - 1 {
		a, b := s.Seconds[k], s.Seconds[k+1]
		mean := a
		if b > a {
			mean = (b - a) / math.Log(b/a)
		}
		sum += mean
	}
	return sum / float64(len(s.Seconds)-1)
}
