package report

import (
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Summary is the figures of one run. Times are in seconds. Those of jobs are over the
// finished jobs that count, undefined if none finished.
type Summary struct {
	Policy     string `json:"policy"`
	Jobs       int    `json:"jobs"` // jobs that count: Finished + Unfinished + Rejected
	Finished   int    `json:"finished"`
	Unfinished int    `json:"unfinished"` // admitted, not finished when the run ended
	Rejected   int    `json:"rejected"`   // never admitted

	AvgJCT    Number `json:"avg_jct_s"`
	MedianJCT Number `json:"median_jct_s"` // mean of the middle two of an even number
	P99JCT    Number `json:"p99_jct_s"`    // nearest rank
	Makespan  Number `json:"makespan_s"`   // last completion - first submission, of rejected jobs too

	DeviceHours Number `json:"device_hours"` // held by the jobs that count, including start costs
	Restarts    int    `json:"restarts"`     // times a running job was stopped or moved
	Preemptions int    `json:"preemptions"`  // restarts that left the job without devices
	Elapsed     Number `json:"elapsed_s"`    // wall time of the run

	Failures        int    `json:"failures"`          // times a job lost its devices because a node went down; not in Restarts
	LostDeviceHours Number `json:"lost_device_hours"` // part of DeviceHours that failures undid

	Guaranteed       int `json:"guaranteed"`        // jobs that are guaranteed their requested devices
	BrokenGuarantees int `json:"broken_guarantees"` // guaranteed jobs rejected, not finished, or finished after their deadline

	MaxJCT      Number   `json:"max_jct_s"`
	Utilisation Number   `json:"utilisation"`       // share of the cluster's device-seconds held, by any job, within Makespan
	AvgDelay    Number   `json:"avg_delay_s"`       // mean queueing delay, first start - submission, of jobs that started
	MaxRho      Number   `json:"max_rho"`           // highest finish-time fairness of a job, undefined unless the result has times alone
	Lookups     *Lookups `json:"lookups,omitempty"` // nil = the truth counts none
	Learned     *Learned `json:"learned,omitempty"` // nil = the belief does not learn
	Gaps        *Gaps    `json:"gaps,omitempty"`    // nil = the policy proves no bounds
	Warnings    []string `json:"warnings,omitempty"`

	// Lateness of guaranteed jobs; nil = there are none, or the reference is not known.
	LateSubmitted *Lateness `json:"late_submitted,omitempty"` // by the completion as submitted, started at submission
	LateBackfill  *Lateness `json:"late_backfill,omitempty"`  // by the completion under fifo-backfill
	// Of Preemptions, those by nodes that went down with notice or by reclaimed quotas; and of these and of Failures,
	// those by spot capacity that was taken back. Absent = 0.
	Evictions int `json:"evictions,omitempty"`
	Reclaims  int `json:"reclaims,omitempty"`
	// Error says why the run has no figures; "" = it has.
	Error string `json:"error,omitempty"`
}

// Learned is the record of a belief that learns, and the cost of its errors.
type Learned struct {
	Seen  int `json:"seen"`  // observed step times
	Known int `json:"known"` // observations with an estimate made before them
	Fits  int `json:"fits"`  // fits after the first of each model
	Unfit int `json:"unfit"` // fits that failed
	// MAPE is the mean of |estimated - observed| / observed over Known.
	MAPE Number `json:"mape"`
	// The share by which figures exceed those of the same policy with perfect
	// belief, undefined without such a run.
	CostAvgJCT   Number `json:"cost_avg_jct"`
	CostMakespan Number `json:"cost_makespan"`
}

// PerfectName is the name in results of a policy's run with perfect belief, the
// reference for its run with a belief that learns.
func PerfectName(policy string) string { return policy + " [perfect]" }

func learned(l *scheduler.Learned) *Learned {
	if l == nil {
		return nil
	}
	out := &Learned{Seen: l.Seen, Known: l.Known, Fits: l.Fits, Unfit: l.Unfit,
		MAPE: Undefined(), CostAvgJCT: Undefined(), CostMakespan: Undefined()}
	if l.Known > 0 {
		out.MAPE = Number(l.MAPE)
	}
	return out
}

// compare sets the costs relative to a run with perfect belief.
func (l *Learned) compare(s, perfect *Summary) {
	if perfect.AvgJCT > 0 {
		l.CostAvgJCT = s.AvgJCT/perfect.AvgJCT - 1
	}
	if perfect.Makespan > 0 {
		l.CostMakespan = s.Makespan/perfect.Makespan - 1
	}
}

// Gaps is the optimality gap of decisions: the share by which their cost may exceed
// the least cost, by the bound that the policy proves.
type Gaps struct {
	Decisions int    `json:"decisions"` // decisions with a bound
	Mean      Number `json:"mean"`
	Worst     Number `json:"worst"`
}

// Lookups counts the truth's answers by their source: a measurement, interpolation
// between measurements, or a model.
type Lookups struct {
	Exact        int `json:"exact"`
	Interpolated int `json:"interpolated"`
	Modelled     int `json:"modelled"`
}

// Summarize computes the figures of r over the jobs of score.
func Summarize(r *sim.Result, score Score) Summary {
	s := Summary{
		Policy: r.Policy, Elapsed: seconds(r.Elapsed), Warnings: slices.Clone(r.Warnings),
		AvgJCT: Undefined(), MedianJCT: Undefined(), P99JCT: Undefined(), MaxJCT: Undefined(),
		Makespan: Undefined(), Utilisation: Undefined(), AvgDelay: Undefined(), MaxRho: Undefined(),
	}
	s.Error, s.Learned = r.Failed, learned(r.Learned)
	s.LateSubmitted, s.LateBackfill = lateness(r, score, asSubmitted), lateness(r, score, backfill)
	if r.Lookups != (sim.Lookups{}) {
		s.Lookups = &Lookups{r.Lookups.Exact, r.Lookups.Interpolated, r.Lookups.Modelled}
	}
	if g := r.Gaps; g.Decisions > 0 {
		s.Gaps = &Gaps{g.Decisions, Number(g.Mean), Number(g.Worst)}
	}
	var held, lost float64
	for _, j := range r.Jobs {
		if !score.Has(j.Job.ID) {
			continue
		}
		s.count(j)
		if !j.Job.OnCPUs() {
			held += j.Attained
			lost += j.LostSec
		}
	}
	s.DeviceHours, s.LostDeviceHours = Number(held/3600), Number(lost/3600)
	if jct := finishedJCT(r, score); len(jct) > 0 {
		s.AvgJCT = mean(jct)
		s.MedianJCT = Number(stats.Median(jct))
		s.P99JCT = Number(stats.NearestRank(jct, 0.99))
		s.MaxJCT = Number(jct[len(jct)-1])
	}
	if d := delays(r, score); len(d) > 0 {
		s.AvgDelay = mean(d)
	}
	if rho := rhos(r, score); len(rho) > 0 {
		s.MaxRho = Number(rho[len(rho)-1])
	}
	if first, last, ok := span(r, score); ok {
		s.Makespan = seconds(last - first)
		s.Utilisation = utilisation(r, first, last)
	}
	return s
}

// SummarizeAll summarizes every run, in order. It compares a run with a belief that
// learns with the run of PerfectName, if results have one.
func SummarizeAll(results []*sim.Result, score Score) []Summary {
	out, byName := make([]Summary, len(results)), map[string]*Summary{}
	for i, r := range results {
		out[i] = Summarize(r, score)
		byName[r.Policy] = &out[i]
	}
	for i := range out {
		if s := &out[i]; s.Learned != nil && byName[PerfectName(s.Policy)] != nil {
			s.Learned.compare(s, byName[PerfectName(s.Policy)])
		}
	}
	return out
}

func (s *Summary) count(j sim.JobRecord) {
	s.Jobs++
	switch {
	case j.Rejected != "":
		s.Rejected++
	case j.Finished:
		s.Finished++
	default:
		s.Unfinished++
	}
	if j.Job.Guaranteed {
		s.Guaranteed++
		late := j.Job.Deadline > 0 && j.End > j.Job.Deadline
		if j.Rejected != "" || !j.Finished || late {
			s.BrokenGuarantees++
		}
	}
	s.Restarts += j.Restarts
	s.Preemptions += j.Preemptions
	s.Failures += j.Failures
	s.Evictions += j.Evictions
	s.Reclaims += j.Reclaims
}

// finishedJCT returns the completion times of the finished jobs that count, in seconds, ascending.
func finishedJCT(r *sim.Result, score Score) []float64 {
	var out []float64
	for _, j := range r.Jobs {
		if j.Finished && j.Rejected == "" && score.Has(j.Job.ID) {
			out = append(out, j.JCT().Seconds())
		}
	}
	slices.Sort(out)
	return out
}

// delays returns the queueing delays of the jobs that count and ever held devices, in seconds, ascending.
func delays(r *sim.Result, score Score) []float64 {
	var out []float64
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Rejected == "" && j.Ran() && score.Has(j.Job.ID) {
			out = append(out, j.Delay().Seconds())
		}
	}
	slices.Sort(out)
	return out
}

// span returns the first submission and the last completion of the jobs that
// count; ok is false when none finished.
func span(r *sim.Result, score Score) (first, last time.Duration, ok bool) {
	first = math.MaxInt64
	for _, j := range r.Jobs {
		if !score.Has(j.Job.ID) {
			continue
		}
		first = min(first, j.Job.Submit)
		if j.Finished && j.Rejected == "" {
			last, ok = max(last, j.End), true
		}
	}
	return first, last, ok
}

// utilisation returns the share of the cluster's device-seconds between from
// and to that were held.
func utilisation(r *sim.Result, from, to time.Duration) Number {
	if to <= from || r.Devices < 1 {
		return Undefined()
	}
	held := integral(r.Usage, from, to, func(u sim.Usage) int { return u.Held })
	return Number(held / (to - from).Seconds() / float64(r.Devices))
}

// integral returns the integral of a quantity of usage over [from, to), in
// seconds times its unit.
func integral(usage []sim.Usage, from, to time.Duration, of func(sim.Usage) int) float64 {
	var sum float64
	for i, u := range usage {
		end := to
		if i+1 < len(usage) {
			end = min(end, usage[i+1].At)
		}
		if begin := max(from, u.At); begin < end {
			sum += float64(of(u)) * (end - begin).Seconds()
		}
	}
	return sum
}

func seconds(d time.Duration) Number { return Number(d.Seconds()) }

// mean returns the mean of v.
func mean(v []float64) Number {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return Number(sum / float64(len(v)))
}
