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
	// fitKnots are the quantiles kept of a size's run times.
	fitKnots = 101
	// fitOwn is how many jobs a size needs for quantiles of its own; smaller
	// ones share those of all jobs.
	fitOwn = 30
	// fitDays is how long a trace must be for its days to have a shape.
	fitDays = 2
	// fitWindow and fitWide are the windows, in seconds, in which arrivals are
	// counted to see how they crowd.
	fitWindow, fitWide = 600, 7200
)

// Fit returns options that make jobs like those of a trace, given in order of
// submission: as many, of the same sizes in the same shares, with the quantiles
// of the run times of each, arriving as often. From two days on arrivals follow
// the trace's mean day, which begins when the trace does, and its bursts.
//
// What a trace has and these jobs lack: repeats of one user's job, weekends, a
// load that grows, and any link between a job's run time and when it comes.
// Everything is in-sample: what differs from the trace does so by chance or by
// form. Jobs must have run times; models, plans and tenants are not fitted.
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

// fitSizes are the sizes asked for, their shares, and their run times.
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
		if len(bySize[n]) >= fitOwn {
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

// fitHours are arrivals by hour of the trace's days, relative to how often the
// trace has that hour.
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
//	h   mean square of the day's relative rates
//	σ²  variance of the rate relative to its mean, Share/(1-Share) (Factor-1)²
//	τ   seconds in which the rate forgets, 1/(1/burst + 1/pause)
//
// in windows T of two lengths, to the trace's about its mean day (Fischer and
// Meier-Hellstern 1993, section 3). Two numbers leave the third free: bursts
// take nearly all the jobs, as they must to be as short as they can.
func fitBurst(at []float64, span float64, o Options) Burst {
	near, wide := dispersion(at, span, fitWindow, o)-1, dispersion(at, span, fitWide, o)-1
	const crowded = 0.05 // below it chance explains the counts
	if near < crowded || wide < crowded {
		return Burst{}
	}
	tau := forgets(wide / near)
	lambda := o.PerHour / 3600
	square := 0.0
	for _, v := range newDay(o.Hours).parts {
		square += v * v / float64(len(o.Hours))
	}
	variance := near / (2 * lambda * square * tau * built(fitWindow/tau))
	share := 0.95 / (1 + variance)
	factor := 1 + math.Sqrt(variance*(1-share)/share)
	return Burst{Factor: min(factor, 1/share), Share: share, Sec: tau / (1 - share)}
}

// built is how far I has come to its limit in a window of x times τ.
func built(x float64) float64 { return 1 + math.Expm1(-x)/x }

// forgets returns τ, between a minute and a day, at which I-1 is ratio times as
// large in the wide window as in the near one.
func forgets(ratio float64) float64 {
	lo, hi := math.Log(60), math.Log(secondsPerDay)
	for range 60 { // the ratio ascends with τ, from 1 to that of the windows
		mid := (lo + hi) / 2
		if tau := math.Exp(mid); built(fitWide/tau)/built(fitWindow/tau) < ratio {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp(lo)
}

// dispersion is the mean squared distance between the arrivals in windows of
// width seconds and those of the mean day, relative to these: 1 for a Poisson
// process.
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
