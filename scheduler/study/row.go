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
	MaxJCT      report.Interval `json:"max_jct_s"`
	Makespan    report.Interval `json:"makespan_s"`
	DeviceHours report.Interval `json:"device_hours"`
	Utilisation report.Interval `json:"utilisation"`
	AvgDelay    report.Interval `json:"avg_delay_s"` // mean queueing delay, first start - submission
	Late        report.Interval `json:"late"`        // guaranteed jobs a run that end more than a minute after they do under the baseline, or never; undefined where none is guaranteed
	MAPE        report.Interval `json:"mape"`        // mean error of step times as believed before they were seen, undefined where the belief does not learn

	// Baseline is the figure less that of the baseline with the same seed, mean
	// and interval of the pairs; OfBaseline is the mean over that of the baseline,
	// see report.RatioT.
	Baseline   Pairs `json:"vs_baseline"`
	OfBaseline Pairs `json:"of_baseline"`
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
	r.MaxJCT, r.DeviceHours, r.Utilisation = over(maxJCT), over(deviceHours), over(utilisation)
	r.AvgDelay, r.MAPE = over(avgDelay), over(mape)
	r.Bound = Figures{over(boundJCT).Mean, over(boundMakespan).Mean}
	r.OverBound = Pairs{over(ratio(avgJCT, boundJCT)), over(ratio(makespan, boundMakespan))}
	r.ComparedWith = s.baseline(&s.Schedulers[c.Scheduler])
	runs, bases = both(runs, bases)
	r.Baseline = Pairs{s.paired(runs, bases, avgJCT), s.paired(runs, bases, makespan)}
	r.OfBaseline = Pairs{s.times(runs, bases, avgJCT), s.times(runs, bases, makespan)}
	r.Late = s.late(runs, bases)
	return r
}

// both returns the runs of which there is a baseline, and these.
func both(runs, bases []*Record) ([]*Record, []*Record) {
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
func boundJCT(k *Record) report.Number      { return k.Bounds.JCT() }
func boundMakespan(k *Record) report.Number { return k.Bounds.Makespan() }

func mape(k *Record) report.Number {
	if k.Summary.Learned == nil {
		return report.Undefined()
	}
	return k.Summary.Learned.MAPE
}

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

// times returns the mean of runs over that of their baselines, of the pairs of which
// both are defined.
func (s *Study) times(runs, bases []*Record, f func(*Record) report.Number) report.Interval {
	var of, to []float64
	for i := range runs {
		if v, base := f(runs[i]), f(bases[i]); v.Defined() && base.Defined() {
			of, to = append(of, float64(v)), append(to, float64(base))
		}
	}
	return report.RatioT(to, of, s.Confidence)
}

// leeway is by how many seconds a guaranteed job may end later than under the
// baseline without being late.
const leeway = 60

// late returns how many guaranteed jobs are late a run.
func (s *Study) late(runs, bases []*Record) report.Interval {
	var counts []float64
	for i, k := range runs {
		if k.Summary.Guaranteed == 0 {
			continue
		}
		n := 0.
		for id, base := range bases[i].Ends {
			if end, ok := k.Ends[id]; !ok || end > base+leeway {
				n++
			}
		}
		counts = append(counts, n)
	}
	return report.StudentT(counts, s.Confidence)
}

// Whole is what the figures of a scheduler are of those of its baseline over all
// workloads.
type Whole struct {
	Load         report.Number `json:"load"` // undefined = as recorded
	Scheduler    string        `json:"scheduler"`
	OfBaseline   Pairs         `json:"of_baseline"`
	ComparedWith string        `json:"baseline"`
}

// Overall compares each scheduler at each load with its baseline over all
// workloads: geometric means with Student's t of the logarithms, the workloads being
// the sample. There is nothing to say of a single workload.
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
