package report

import (
	"math"
	"sort"
	"time"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Bounds on the points of a chart per run, about the resolution of a screen.
const (
	cdfPoints   = 800 // smooth lines
	timeBuckets = 250 // lines that jump
)

// chart is lines over common x values, all in base units.
type chart struct {
	X     []Number   `json:"x"`
	Lines [][]Number `json:"lines"` // by run; undefined where a run has no value
	// StepSec is the length of the interval that a point averages, in seconds;
	// 0 = points are not averages.
	StepSec float64 `json:"step_s,omitempty"`
}

// jctChart returns, for each run, the share of the admitted jobs that count
// which finished within x seconds of their submission. ok is false when no job
// finished.
func jctChart(results []*sim.Result, score Score) (c chart, ok bool) {
	return cdfChart(results, func(r *sim.Result) sample { return sample{finishedJCT(r, score), admitted(r, score)} })
}

// delayChart returns, for each run, the share of the admitted jobs that count
// which first got devices within x seconds of their submission. ok is false when
// no job had to wait.
func delayChart(results []*sim.Result, score Score) (c chart, ok bool) {
	return cdfChart(results, func(r *sim.Result) sample { return sample{delays(r, score), admitted(r, score)} })
}

// rhoChart returns, for each run, the share of the admitted jobs that count with a
// finish-time fairness of at most x, as defined by isolatedTimes. Jobs that did not
// finish are in the denominator; finished jobs with unknown fairness are not. ok is
// false when it is unknown for every job.
func rhoChart(results []*sim.Result, score Score) (c chart, ok bool) {
	return cdfChart(results, func(r *sim.Result) sample {
		values := rhos(r, score)
		return sample{values, len(values) + Summarize(r, score).Unfinished}
	})
}

// admitted counts the jobs that count and were not rejected.
func admitted(r *sim.Result, score Score) int {
	s := Summarize(r, score)
	return s.Finished + s.Unfinished
}

// sample is ascending values >= 0 and the number of jobs that shares refer to,
// which may be larger than the number of values.
type sample struct {
	values []float64
	jobs   int
}

// cdfChart returns, for each run, the share of its jobs with a value of at most
// x. The x are evenly spaced in log(x) from the least positive value to the
// largest; each share is exact. ok is false when there is no positive value.
func cdfChart(results []*sim.Result, of func(*sim.Result) sample) (c chart, ok bool) {
	samples := make([]sample, len(results))
	least, most := math.Inf(1), 0.0
	for i, r := range results {
		samples[i] = of(r)
		values := samples[i].values
		if n := len(values); n > 0 {
			most = max(most, values[n-1])
		}
		if k := sort.Search(len(values), func(k int) bool { return values[k] > 0 }); k < len(values) {
			least = min(least, values[k])
		}
	}
	if most == 0 {
		return chart{}, false
	}
	grid := logGrid(max(least, 1e-3), max(most, 1e-3))
	for _, x := range grid {
		c.X = append(c.X, Number(x))
	}
	for _, s := range samples {
		c.Lines = append(c.Lines, shares(s.values, grid, s.jobs))
	}
	return c, true
}

// shares returns, for each x, the number of ascending values that are at most x as
// a share of n.
func shares(values, xs []float64, n int) []Number {
	out := make([]Number, len(xs))
	for i, x := range xs {
		at := sort.Search(len(values), func(k int) bool { return values[k] > x })
		out[i] = round(Number(float64(at)/float64(n)), 5)
	}
	return out
}

// logGrid returns ascending, distinct values, evenly spaced in their logarithm,
// from just below lo to just above hi, to four digits.
func logGrid(lo, hi float64) []float64 {
	from, to := math.Log(lo*0.98), math.Log(hi*1.02)
	var out []float64
	for i := range cdfPoints {
		x := math.Exp(from + (to-from)*float64(i)/(cdfPoints-1))
		unit := math.Pow(10, math.Floor(math.Log10(x))-3)
		x = math.Round(math.Round(x/unit)*unit*1e9) / 1e9
		if len(out) == 0 || x > out[len(out)-1] {
			out = append(out, x)
		}
	}
	return out
}

// usageChart returns a quantity of every run's usage over time, as means over
// equal steps of a round length. A run's line ends with the run.
func usageChart(results []*sim.Result, of func(*sim.Result, sim.Usage) float64) (c chart, ok bool) {
	var last time.Duration
	for _, r := range results {
		last = max(last, RunEnd(r))
	}
	if last <= 0 {
		return chart{}, false
	}
	step := roundStep(last / timeBuckets)
	n := int((last + step - 1) / step)
	c.StepSec = step.Seconds()
	for i := range n {
		c.X = append(c.X, seconds(time.Duration(i)*step))
	}
	for _, r := range results {
		c.Lines = append(c.Lines, stepMeans(r, step, n, func(u sim.Usage) float64 { return of(r, u) }))
	}
	return c, true
}

// RunEnd returns the last time in r: that of its last usage or completion.
func RunEnd(r *sim.Result) time.Duration {
	var end time.Duration
	if n := len(r.Usage); n > 0 {
		end = r.Usage[n-1].At
	}
	for _, j := range r.Jobs {
		if j.Finished {
			end = max(end, j.End)
		}
	}
	return end
}

// stepMeans returns the time-weighted means of a quantity of r's usage over n
// steps from time 0, in one pass. The last step counts up to the run's end;
// those after it are undefined.
func stepMeans(r *sim.Result, step time.Duration, n int, of func(sim.Usage) float64) []Number {
	sums := make([]float64, n)
	end := RunEnd(r)
	for i, u := range r.Usage {
		until := end
		if i+1 < len(r.Usage) {
			until = r.Usage[i+1].At
		}
		v := of(u)
		for at := max(u.At, 0); at < until; {
			k := int(at / step)
			to := min(until, time.Duration(k+1)*step)
			sums[k] += v * (to - at).Seconds()
			at = to
		}
	}
	out := make([]Number, n)
	for k := range out {
		begin := time.Duration(k) * step
		width := min(step, end-begin)
		if width <= 0 {
			out[k] = Undefined()
			continue
		}
		out[k] = round(Number(sums[k]/width.Seconds()), 4)
	}
	return out
}

// roundStep returns the shortest round time that is at least d.
func roundStep(d time.Duration) time.Duration {
	const day = 24 * time.Hour
	for _, s := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second,
		30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day} {
		if d <= s {
			return s
		}
	}
	return (d + day - 1) / day * day
}

// round rounds n to so many decimals.
func round(n Number, decimals int) Number {
	p := math.Pow10(decimals)
	return Number(math.Round(float64(n)*p) / p)
}
