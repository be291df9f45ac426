package study

import (
	"github.com/pacer-ml/pacer/scheduler/report"
)

// Row is the figures of a scheduler on a workload at a load: counts over all runs, and
// means over the seeds with Student's t intervals. Failed runs and undefined figures
// are left out.
type Row struct {
	Workload  string        `json:"workload"`
	Load      report.Number `json:"load"` // undefined = as recorded
	Scheduler string        `json:"scheduler"`

	Seeds      int `json:"seeds"`  // runs that succeeded
	Failed     int `json:"failed"` // runs that failed; Error is why the first did
	Jobs       int `json:"jobs"`
	Finished   int `json:"finished"`
	Unfinished int `json:"unfinished"`
	Rejected   int `json:"rejected"`
	Restarts   int `json:"restarts"`
	Failures   int `json:"failures"`

	AvgJCT      report.Interval `json:"avg_jct_s"`
	MedianJCT   report.Interval `json:"median_jct_s"`
	P99JCT      report.Interval `json:"p99_jct_s"`
	MaxJCT      report.Interval `json:"max_jct_s"`
	Makespan    report.Interval `json:"makespan_s"`
	DeviceHours report.Interval `json:"device_hours"`
	Utilisation report.Interval `json:"utilisation"`
	AvgDelay    report.Interval `json:"avg_delay_s"` // mean queueing delay, first start - submission
	Late        report.Interval `json:"late"`        // guaranteed jobs per run that end more than a minute later than under the baseline, or never; undefined without guaranteed jobs
	MAPE        report.Interval `json:"mape"`        // mean relative error of step times estimated before they were observed, undefined if the belief does not learn

	// Baseline is the mean difference from the baseline with the same seed.
	// OfBaseline is the ratio of the means, see report.RatioT.
	Baseline   Pairs `json:"vs_baseline"`
	OfBaseline Pairs `json:"of_baseline"`
	// Bound is the mean over the seeds of the best lower bounds. OverBound is the
	// mean of the ratios to them, run by run.
	Bound     Figures `json:"bound"`
	OverBound Pairs   `json:"over_bound"`

	ComparedWith string `json:"baseline"` // name of the baseline

	MaxRho report.Interval `json:"max_rho"` // highest finish-time fairness of a job
	// Guaranteed jobs that end later than as submitted, and than under fifo-backfill.
	LateSubmitted Late   `json:"late_submitted"`
	LateBackfill  Late   `json:"late_backfill"`
	Error         string `json:"error,omitempty"`
}

// Late is the lateness of guaranteed jobs over runs, see report.Lateness; undefined without
// guaranteed jobs.
type Late struct {
	Jobs     report.Interval `json:"jobs"`    // late jobs per run
	WorstSec report.Number   `json:"worst_s"` // largest lateness in any run
	MeanSec  report.Interval `json:"mean_s"`  // mean lateness of a job
}

// Pairs are the two figures that are compared with the baseline.
type Pairs struct {
	AvgJCT   report.Interval `json:"avg_jct"`
	Makespan report.Interval `json:"makespan"`
}

// Figures are the two figures with lower bounds, in seconds.
type Figures struct {
	AvgJCT   report.Number `json:"avg_jct_s"`
	Makespan report.Number `json:"makespan_s"`
}

// Rows summarizes outcomes, in the order of Study.Cells.
func (s *Study) Rows(outcomes []Outcome) []Row {
	var out []Row
	type place struct {
		scheduler string
		workload  int
		load      float64
		seed      uint64
	}
	base := map[place]*Record{}
	for i := range outcomes {
		o := &outcomes[i]
		if o.Err == nil {
			base[place{s.Schedulers[o.Cell.Scheduler].Name, o.Cell.Workload, o.Cell.Load, o.Cell.Seed}] = &o.Record
		}
	}
	for len(outcomes) > 0 {
		n := len(s.Seeds)
		seeds := outcomes[:n]
		outcomes = outcomes[n:]
		out = append(out, s.row(seeds, func(c Cell) *Record {
			return base[place{s.baseline(&s.Schedulers[c.Scheduler]), c.Workload, c.Load, c.Seed}]
		}))
	}
	return out
}

// row summarizes the runs of a row's seeds. baseline returns the baseline's run for a
// cell, nil if that failed.
func (s *Study) row(seeds []Outcome, baseline func(Cell) *Record) Row {
	c := seeds[0].Cell
	r := Row{Workload: s.Workloads[c.Workload].Name, Load: report.Number(c.Load), Scheduler: s.Schedulers[c.Scheduler].Name}
	if c.Load == 0 {
		r.Load = report.Undefined()
	}
	var runs, bases []*Record
	for i := range seeds {
		if seeds[i].Err != nil {
			if r.Failed++; r.Error == "" {
				r.Error = seeds[i].Err.Error()
			}
			continue
		}
		runs, bases = append(runs, &seeds[i].Record), append(bases, baseline(seeds[i].Cell))
	}
	r.Seeds = len(runs)
	for _, k := range runs {
		r.count(k)
	}
	over := func(f func(*Record) report.Number) report.Interval { return s.interval(runs, f) }
	r.AvgJCT, r.MedianJCT, r.P99JCT, r.Makespan = over(avgJCT), over(medianJCT), over(p99JCT), over(makespan)
	r.MaxJCT, r.DeviceHours, r.Utilisation = over(maxJCT), over(deviceHours), over(utilisation)
	r.AvgDelay, r.MAPE, r.MaxRho = over(avgDelay), over(mape), over(maxRho)
	r.LateSubmitted = s.lateness(runs, func(k *Record) *report.Lateness { return k.Summary.LateSubmitted })
	r.LateBackfill = s.lateness(runs, func(k *Record) *report.Lateness { return k.Summary.LateBackfill })
	r.Bound = Figures{over(boundJCT).Mean, over(boundMakespan).Mean}
	r.OverBound = Pairs{over(ratio(avgJCT, boundJCT)), over(ratio(makespan, boundMakespan))}
	r.ComparedWith = s.baseline(&s.Schedulers[c.Scheduler])
	runs, bases = withBaseline(runs, bases)
	r.Baseline = Pairs{s.paired(runs, bases, avgJCT), s.paired(runs, bases, makespan)}
	r.OfBaseline = Pairs{s.times(runs, bases, avgJCT), s.times(runs, bases, makespan)}
	r.Late = s.late(runs, bases)
	return r
}

// withBaseline returns the runs that have a baseline, and their baselines.
func withBaseline(runs, bases []*Record) ([]*Record, []*Record) {
	var of, to []*Record
	for i, k := range runs {
		if bases[i] != nil {
			of, to = append(of, k), append(to, bases[i])
		}
	}
	return of, to
}

func (r *Row) count(k *Record) {
	r.Jobs += k.Summary.Jobs
	r.Finished += k.Summary.Finished
	r.Unfinished += k.Summary.Unfinished
	r.Rejected += k.Summary.Rejected
	r.Restarts += k.Summary.Restarts
	r.Failures += k.Summary.Failures
}

func avgJCT(k *Record) report.Number        { return k.Summary.AvgJCT }
func medianJCT(k *Record) report.Number     { return k.Summary.MedianJCT }
func p99JCT(k *Record) report.Number        { return k.Summary.P99JCT }
func maxJCT(k *Record) report.Number        { return k.Summary.MaxJCT }
func makespan(k *Record) report.Number      { return k.Summary.Makespan }
func deviceHours(k *Record) report.Number   { return k.Summary.DeviceHours }
func utilisation(k *Record) report.Number   { return k.Summary.Utilisation }
func avgDelay(k *Record) report.Number      { return k.Summary.AvgDelay }
func maxRho(k *Record) report.Number        { return k.Summary.MaxRho }
func boundJCT(k *Record) report.Number      { return k.Bounds.JCT() }
func boundMakespan(k *Record) report.Number { return k.Bounds.Makespan() }

func mape(k *Record) report.Number {
	if k.Summary.Learned == nil {
		return report.Undefined()
	}
	return k.Summary.Learned.MAPE
}

// ratio returns one figure over another, undefined if that is not positive.
func ratio(of, over func(*Record) report.Number) func(*Record) report.Number {
	return func(k *Record) report.Number {
		if !(over(k) > 0) {
			return report.Undefined()
		}
		return of(k) / over(k)
	}
}

func (s *Study) interval(runs []*Record, f func(*Record) report.Number) report.Interval {
	return report.StudentT(values(runs, f), s.Confidence)
}

func values(runs []*Record, f func(*Record) report.Number) []float64 {
	out := make([]float64, len(runs))
	for i, k := range runs {
		out[i] = float64(f(k))
	}
	return out
}

// paired returns the mean difference of runs from their baselines.
func (s *Study) paired(runs, bases []*Record, f func(*Record) report.Number) report.Interval {
	differences := values(runs, f)
	for i, v := range values(bases, f) {
		differences[i] -= v
	}
	return report.StudentT(differences, s.Confidence)
}

// times returns the mean of runs over that of their baselines, over the pairs with both
// figures defined.
func (s *Study) times(runs, bases []*Record, f func(*Record) report.Number) report.Interval {
	var of, to []float64
	for i := range runs {
		if v, base := f(runs[i]), f(bases[i]); v.Defined() && base.Defined() {
			of, to = append(of, float64(v)), append(to, float64(base))
		}
	}
	return report.RatioT(to, of, s.Confidence)
}

// lateness returns the lateness of guaranteed jobs over runs.
func (s *Study) lateness(runs []*Record, of func(*Record) *report.Lateness) Late {
	figure := func(f func(*report.Lateness) report.Number) func(*Record) report.Number {
		return func(k *Record) report.Number {
			if l := of(k); l != nil {
				return f(l)
			}
			return report.Undefined()
		}
	}
	out := Late{WorstSec: report.Undefined(),
		Jobs:    s.interval(runs, figure(func(l *report.Lateness) report.Number { return report.Number(l.Late) })),
		MeanSec: s.interval(runs, figure(func(l *report.Lateness) report.Number { return l.MeanSec }))}
	for _, v := range values(runs, figure(func(l *report.Lateness) report.Number { return l.WorstSec })) {
		if n := report.Number(v); n.Defined() && !(n <= out.WorstSec) {
			out.WorstSec = n
		}
	}
	return out
}

// late returns the number of late guaranteed jobs per run.
func (s *Study) late(runs, bases []*Record) report.Interval {
	var counts []float64
	for i, k := range runs {
		if k.Summary.Guaranteed == 0 {
			continue
		}
		n := 0.
		for id, base := range bases[i].Ends {
			if end, ok := k.Ends[id]; !ok || end > base+report.LateSec {
				n++
			}
		}
		counts = append(counts, n)
	}
	return report.StudentT(counts, s.Confidence)
}

// Whole is the ratio of a scheduler's figures to those of its baseline over all
// workloads.
type Whole struct {
	Load         report.Number `json:"load"` // undefined = as recorded
	Scheduler    string        `json:"scheduler"`
	OfBaseline   Pairs         `json:"of_baseline"`
	ComparedWith string        `json:"baseline"`
}

// Overall compares each scheduler at each load with its baseline over all workloads:
// geometric means with Student's t intervals of the logarithms over the workloads. It
// returns nil for a single workload.
func (s *Study) Overall(rows []Row) []Whole {
	if len(s.Workloads) < 2 {
		return nil
	}
	var out []Whole
	each := len(rows) / len(s.Workloads)
	for i, r := range rows[:each] {
		if r.Scheduler == r.ComparedWith {
			continue
		}
		var jct, span []float64
		for k := i; k < len(rows); k += each {
			jct, span = append(jct, float64(rows[k].OfBaseline.AvgJCT.Mean)), append(span, float64(rows[k].OfBaseline.Makespan.Mean))
		}
		out = append(out, Whole{r.Load, r.Scheduler, Pairs{report.GeometricT(jct, s.Confidence), report.GeometricT(span, s.Confidence)}, r.ComparedWith})
	}
	return out
}
