package report

import (
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// isolatedTimes returns, for each job of r, the seconds it would take on an equal
// share of the cluster, undefined if unknown:
//
//	T = max(1, d*N / M) * alone
//
//	d      devices the job requests
//	M      devices of the types it may use
//	N      jobs in the system (submitted, not rejected, not complete) including
//	       itself, as the mean from its submission to its completion
//	alone  run time at the requested devices and plan, no waits, no start costs
//
// The job has M/N devices to itself. If these are d or more, it runs as alone; else
// it gets its d devices for the share M/(d*N) of the time, as in the isolated policy
// of Gavel (Narayanan et al., OSDI 2020). JCT over T is the finish-time fairness rho,
// the ratio of shared to isolated running time of Themis (Mahajan et al., NSDI 2020,
// section 3). Jobs in Themis can use any number of devices; here they request a fixed
// number. A job that did not finish is in the system until the run ends.
func isolatedTimes(r *sim.Result) []Number {
	c := newJobCount(r)
	out := make([]Number, len(r.Jobs))
	for i := range r.Jobs {
		j := &r.Jobs[i]
		out[i] = Undefined()
		if j.Rejected != "" || j.Alone <= 0 || j.Usable < 1 {
			continue
		}
		if n := c.mean(j.Job.Submit, c.end(j)); n > 0 {
			out[i] = seconds(j.Alone) * Number(max(1, float64(j.Job.Devices)*n/float64(j.Usable)))
		}
	}
	return out
}

// rhos returns the finish-time fairness of the finished jobs that count,
// ascending, without those with unknown fairness.
func rhos(r *sim.Result, score Score) []float64 {
	var out []float64
	for i, t := range isolatedTimes(r) {
		if j := &r.Jobs[i]; j.Finished && t > 0 && score.Has(j.Job.ID) {
			out = append(out, j.JCT().Seconds()/float64(t))
		}
	}
	slices.Sort(out)
	return out
}

// fairnessRow is the finish-time fairness of a run as the page shows it.
type fairnessRow struct {
	Policy                string
	Color                 int
	Mean, P99, Max, Above string // Above is the share of the jobs above 1
	Known, Unknown        int    // finished jobs that count
}

func newFairnessRow(r *sim.Result, score Score, color int) fairnessRow {
	values := rhos(r, score)
	row := fairnessRow{Policy: r.Policy, Color: color, Mean: "-", P99: "-", Max: "-", Above: "-", Known: len(values)}
	row.Unknown = Summarize(r, score).Finished - len(values)
	if len(values) == 0 {
		return row
	}
	sum, above := 0.0, 0
	for _, v := range values {
		sum += v
		if v > 1 {
			above++
		}
	}
	n := float64(len(values))
	row.Mean, row.Above = Number(sum/n).Fixed(2), Number(float64(above)/n).Fixed(3)
	row.P99, row.Max = Number(stats.NearestRank(values, 0.99)).Fixed(2), Number(values[len(values)-1]).Fixed(2)
	return row
}

// jobCount is the number of jobs in the system over time, and its integral.
type jobCount struct {
	at   []time.Duration // times of changes, ascending
	n    []int           // jobs from at[i] on
	area []float64       // job-seconds until at[i]
	last time.Duration   // end of the run
}

func newJobCount(r *sim.Result) *jobCount {
	c := &jobCount{last: RunEnd(r)}
	var arrivals, departures []time.Duration
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if end := c.end(j); j.Rejected == "" && end > j.Job.Submit {
			arrivals, departures = append(arrivals, j.Job.Submit), append(departures, end)
		}
	}
	slices.Sort(arrivals)
	slices.Sort(departures)
	c.at = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(arrivals), departures...))))
	in, out := 0, 0
	for i, at := range c.at {
		area := 0.0
		if i > 0 {
			area = c.area[i-1] + float64(c.n[i-1])*(at-c.at[i-1]).Seconds()
		}
		for ; in < len(arrivals) && arrivals[in] <= at; in++ {
		}
		for ; out < len(departures) && departures[out] <= at; out++ {
		}
		c.n, c.area = append(c.n, in-out), append(c.area, area)
	}
	return c
}

// end returns when j left: its completion, else the end of the run.
func (c *jobCount) end(j *sim.JobRecord) time.Duration {
	if j.Finished {
		return j.End
	}
	return c.last
}

// mean returns the mean number of jobs from one time to another, 0 for an empty
// interval.
func (c *jobCount) mean(from, to time.Duration) float64 {
	if to <= from {
		return 0
	}
	return (c.until(to) - c.until(from)) / (to - from).Seconds()
}

// until returns the job-seconds up to a time.
func (c *jobCount) until(t time.Duration) float64 {
	i, found := slices.BinarySearch(c.at, t)
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return c.area[i] + float64(c.n[i])*(t-c.at[i]).Seconds()
}
