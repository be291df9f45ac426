package study

import (
	"github.com/pacer-ml/pacer/scheduler/report"
)

// Row is the figures of a scheduler on a workload at a load: counts over all its
// runs, and over the seeds means with Student's t intervals. A seed whose run
// failed, or whose figure is undefined, is not among them.
type Row struct {
	Workload  string        `json:"workload"`
	Load      report.Number `json:"load"` // undefined = as recorded
	Scheduler string        `json:"scheduler"`

	Seeds      int `json:"seeds"`  // runs that count
	Failed     int `json:"failed"` // runs that could not be run
	Jobs       int `json:"jobs"`
	Finished   int `json:"finished"`
	Unfinished int `json:"unfinished"`
	Rejected   int `json:"rejected"`
	Restarts   int `json:"restarts"`
	Failures   int `json:"failures"`

	AvgJCT      report.Interval `json:"avg_jct_s"`
	MedianJCT   report.Interval `json:"median_jct_s"`
	P99JCT      report.Interval `json:"p99_jct_s"`
	Makespan    report.Interval `json:"makespan_s"`
	DeviceHours report.Interval `json:"device_hours"`
	Utilisation report.Interval `json:"utilisation"`
	AvgDelay    report.Interval `json:"avg_delay_s"` // mean queueing delay, first start - submission

	// Baseline is the figure less that of the baseline with the same seed, mean
	// and interval of the pairs.
	Baseline Pairs `json:"vs_baseline"`
	// Bound is the best lower bounds, means over the seeds, and OverBound the
	// figures over them, run by run.
	Bound     Figures `json:"bound"`
	OverBound Pairs   `json:"over_bound"`

	ComparedWith string `json:"baseline"` // the scheduler of vs_baseline
}

// Pairs are the two figures that are compared.
type Pairs struct {
	AvgJCT   report.Interval `json:"avg_jct"`
	Makespan report.Interval `json:"makespan"`
}

// Figures are the two figures that are bounded, in seconds.
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

// row summarizes the runs of the seeds of a row; baseline returns the run to
// compare one with, nil if that failed.
func (s *Study) row(seeds []Outcome, baseline func(Cell) *Record) Row {
	c := seeds[0].Cell
	r := Row{Workload: s.Workloads[c.Workload].Name, Load: report.Number(c.Load), Scheduler: s.Schedulers[c.Scheduler].Name}
	if c.Load == 0 {
		r.Load = report.Undefined()
	}
	var runs, bases []*Record
	for i := range seeds {
		if seeds[i].Err != nil {
			r.Failed++
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
	r.DeviceHours, r.Utilisation = over(deviceHours), over(utilisation)
	r.AvgDelay = over(avgDelay)
	r.Bound = Figures{over(boundJCT).Mean, over(boundMakespan).Mean}
	r.OverBound = Pairs{over(ratio(avgJCT, boundJCT)), over(ratio(makespan, boundMakespan))}
	r.ComparedWith = s.baseline(&s.Schedulers[c.Scheduler])
	r.Baseline = Pairs{s.paired(runs, bases, avgJCT), s.paired(runs, bases, makespan)}
	return r
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
func makespan(k *Record) report.Number      { return k.Summary.Makespan }
func deviceHours(k *Record) report.Number   { return k.Summary.DeviceHours }
func utilisation(k *Record) report.Number   { return k.Summary.Utilisation }
func avgDelay(k *Record) report.Number      { return k.Summary.AvgDelay }
func boundJCT(k *Record) report.Number      { return k.Bounds.JCT() }
func boundMakespan(k *Record) report.Number { return k.Bounds.Makespan() }

// ratio is one figure over another that is positive.
func ratio(of, over func(*Record) report.Number) func(*Record) report.Number {
	return func(k *Record) report.Number {
		if !(over(k) > 0) {
			return report.Undefined()
		}
		return of(k) / over(k)
	}
}

func (s *Study) interval(runs []*Record, f func(*Record) report.Number) report.Interval {
	values := make([]float64, len(runs))
	for i, k := range runs {
		values[i] = float64(f(k))
	}
	return report.StudentT(values, s.Confidence)
}

// paired returns the mean difference of pairs, of which both are there.
func (s *Study) paired(runs, bases []*Record, f func(*Record) report.Number) report.Interval {
	var values []float64
	for i, k := range runs {
		if bases[i] != nil {
			values = append(values, float64(f(k)-f(bases[i])))
		}
	}
	return report.StudentT(values, s.Confidence)
}
