package synthetic

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

const (
	// fitKnots is the number of quantiles kept of a size's run times.
	fitKnots = 101
	// minJobsPerSize is the number of jobs from which a size has quantiles of its own; smaller ones
	// share those of all jobs.
	minJobsPerSize = 30
	// fitDays is the length of a trace from which its daily pattern is fitted.
	fitDays = 2
	// fitWindow and fitWide are the windows, in seconds, in which arrivals are counted to measure
	// burstiness.
	fitWindow, fitWide = 600, 7200
)

// Fit returns options for jobs like those of a trace, given by submission: as many, with the same
// sizes in the same shares, the quantiles of the run times of each size, and the same arrival rate.
// From two days on, arrivals follow the trace's mean day, which begins with the trace, and its
// bursts.
//
// The synthetic jobs lack repeated jobs of a user, weekends, a growing load, and any correlation
// between run time and arrival. The fit is in-sample: differences from the trace are due to chance
// or to the form. Jobs must have run times; models, plans and tenants are not fitted.
func Fit(jobs []spec.Job) (Options, error) {
	if len(jobs) < 2 {
		return Options{}, fmt.Errorf("synthetic: %d jobs are too few to fit to", len(jobs))
	}
	at := make([]float64, len(jobs))
	for i, j := range jobs {
		at[i] = (j.Submit - jobs[0].Submit).Seconds()
		switch {
		case j.Duration <= 0:
			return Options{}, fmt.Errorf("synthetic: job %s has no run time to fit to", j.ID)
		case i > 0 && at[i] < at[i-1]:
			return Options{}, fmt.Errorf("synthetic: job %s is submitted before the job ahead of it", j.ID)
		}
	}
	span := at[len(at)-1]
	if span <= 0 {
		return Options{}, fmt.Errorf("synthetic: all %d jobs are submitted at once", len(jobs))
	}
	o := Options{Jobs: len(jobs), PerHour: float64(len(jobs)-1) / span * 3600, Sizes: fitSizes(jobs)}
	if span >= fitDays*secondsPerDay {
		o.Hours = fitHours(at, span)
		o.Burst = fitBurst(at, span, o)
	}
	return o, nil
}

// Resample returns the run times of jobs for Options.Seconds, of whatever size. Jobs without a run
// time are left out.
func Resample(jobs []spec.Job) ([]float64, error) {
	var all []float64
	for i := range jobs {
		if jobs[i].Duration > 0 {
			all = append(all, jobs[i].Duration.Seconds())
		}
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("synthetic: %d of %d jobs have a run time, too few to draw others from", len(all), len(jobs))
	}
	return quantiles(all), nil
}

// fitSizes returns the sizes, their shares and their run times.
func fitSizes(jobs []spec.Job) []Size {
	bySize := map[int][]float64{}
	var all []float64
	for _, j := range jobs {
		bySize[j.Devices] = append(bySize[j.Devices], j.Duration.Seconds())
		all = append(all, j.Duration.Seconds())
	}
	shared := quantiles(all)
	var out []Size
	for _, n := range slices.Sorted(maps.Keys(bySize)) {
		s := Size{Devices: n, Share: float64(len(bySize[n])) / float64(len(jobs)), Seconds: shared}
		if len(bySize[n]) >= minJobsPerSize {
			s.Seconds = quantiles(bySize[n])
		}
		out = append(out, s)
	}
	return out
}

func quantiles(v []float64) []float64 {
	slices.Sort(v)
	out := make([]float64, fitKnots)
	for i := range out {
		out[i] = stat.Quantile(float64(i)/(fitKnots-1), stat.LinInterp, v, nil)
	}
	out[0] = v[0]
	return out
}

// fitHours returns arrivals by hour of the trace's days, relative to how often the trace has that
// hour.
func fitHours(at []float64, span float64) []float64 {
	const parts = 24
	const width = secondsPerDay / parts
	hours := make([]float64, parts)
	for _, t := range at {
		hours[int(t/width)%parts]++
	}
	days := math.Floor(span / secondsPerDay)
	rest := span - days*secondsPerDay
	for i := range hours {
		hours[i] /= days + min(max(rest/width-float64(i), 0), 1)
	}
	return hours
}

// fitBurst matches the index of dispersion of counts of a two-state process,
//
//	I(T) = 1 + 2 λ h σ² τ (1 - (τ/T) (1 - exp(-T/τ)))
//
//	λ   mean arrivals per second
//	h   mean square of the relative rates of the day
//	σ²  variance of the relative rate, Share/(1-Share) (Factor-1)²
//	τ   relaxation time of the rate, seconds, 1/(1/burst + 1/pause)
//
// to that of the trace about its mean day, in windows T of two lengths (Fischer and Meier-Hellstern
// 1993, section 3). Two equations leave one of three unknowns free: bursts are as short as
// possible, which puts nearly all jobs into them.
func fitBurst(at []float64, span float64, o Options) Burst {
	near, wide := dispersion(at, span, fitWindow, o)-1, dispersion(at, span, fitWide, o)-1
	const minDispersion = 0.05 // below it the counts are explained by chance
	if near < minDispersion || wide < minDispersion {
		return Burst{}
	}
	tau := relaxationTime(wide / near)
	lambda := o.PerHour / 3600
	square := 0.0
	for _, v := range newDay(o.Hours).parts {
		square += v * v / float64(len(o.Hours))
	}
	variance := near / (2 * lambda * square * tau * saturation(fitWindow/tau))
	share := 0.95 / (1 + variance)
	factor := 1 + math.Sqrt(variance*(1-share)/share)
	return Burst{Factor: min(factor, 1/share), Share: share, Sec: tau / (1 - share)}
}

// saturation returns how close I is to its limit in a window of x times τ.
func saturation(x float64) float64 { return 1 + math.Expm1(-x)/x }

// relaxationTime returns τ, between a minute and a day, at which I-1 is ratio times as large in the
// wide window as in the near one.
func relaxationTime(ratio float64) float64 {
	lo, hi := math.Log(60), math.Log(secondsPerDay)
	for range 60 { // the ratio ascends with τ, from 1 to that of the windows
		mid := (lo + hi) / 2
		if tau := math.Exp(mid); saturation(fitWide/tau)/saturation(fitWindow/tau) < ratio {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp(lo)
}

// dispersion is the mean squared difference between the arrivals in windows of width seconds and
// those of the mean day, relative to the latter: 1 for a Poisson process.
func dispersion(at []float64, span, width float64, o Options) float64 {
	counts := make([]float64, int(span/width))
	for _, t := range at {
		if k := int(t / width); k < len(counts) {
			counts[k]++
		}
	}
	d := newDay(o.Hours)
	var off, all float64
	for k, n := range counts {
		want := expected(d, float64(k)*width, float64(k+1)*width) * o.PerHour / 3600
		off += (n - want) * (n - want)
		all += want
	}
	return off / cmp.Or(all, 1)
}

// expected integrates the rate of a day.
func expected(d day, from, to float64) float64 {
	sum := 0.0
	for from < to {
		r, until := d.at(from)
		until = min(until, to)
		sum += r * (until - from)
		from = until
	}
	return sum
}
