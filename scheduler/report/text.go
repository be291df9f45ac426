package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
)

// WriteTable writes the runs as a plain-text table, times in their two largest
// units. Some columns are shown only if needed: the number of jobs if not all
// finished; unfinished, rejected, preempted and failed jobs if there are any; the
// share of exact look-ups if they were counted; late guaranteed jobs. Wall times are not shown. Lines
// below the table say why a run has no figures, and explain less common columns.
func WriteTable(w io.Writer, runs []Summary) error {
	var t Table
	for _, c := range summaryColumns {
		if c.shown != nil && !slices.ContainsFunc(runs, c.shown) {
			continue
		}
		t.Header = append(t.Header, c.Name)
		for i, s := range runs {
			if i == len(t.Rows) {
				t.Rows = append(t.Rows, nil)
			}
			t.Rows[i] = append(t.Rows[i], c.text(s))
		}
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, s := range runs {
		if s.Error == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "no result: %s: %s\n", s.Policy, s.Error); err != nil {
			return err
		}
	}
	for _, c := range summaryColumns {
		if c.note && slices.ContainsFunc(runs, c.shown) {
			if _, err := fmt.Fprintf(w, "%s: %s\n", c.Name, c.About); err != nil {
				return err
			}
		}
	}
	return nil
}

// summaryColumn is a column of the table of runs, in text and HTML.
type summaryColumn struct {
	Name  string
	About string // explains the figure, in HTML
	note  bool   // About is below the text table too; requires shown
	text  func(Summary) string
	value func(Summary) Number // to sort by, nil for the policy
	shown func(Summary) bool   // the column is shown if true for any run; nil = always
}

var summaryColumns = []summaryColumn{
	{Name: "policy", About: "scheduling policy with its options",
		text: func(s Summary) string { return s.Policy }},
	countColumn("jobs", "jobs that count",
		func(s Summary) int { return s.Jobs }, func(s Summary) bool { return s.Jobs != s.Finished }),
	countColumn("finished", "jobs that completed", func(s Summary) int { return s.Finished }, nil),
	countColumn("unfinished", "admitted, but not complete when the run ended",
		func(s Summary) int { return s.Unfinished }, func(s Summary) bool { return s.Unfinished > 0 }),
	countColumn("rejected", "never admitted",
		func(s Summary) int { return s.Rejected }, func(s Summary) bool { return s.Rejected > 0 }),
	countColumn("broken", "guaranteed jobs that were rejected, did not finish, or missed their deadline",
		func(s Summary) int { return s.BrokenGuarantees }, func(s Summary) bool { return s.BrokenGuarantees > 0 }),
	{Name: "late", About: "guaranteed jobs that end more than a minute later than under fifo-backfill, or never", note: true,
		text:  func(s Summary) string { return s.LateBackfill.late().Fixed(0) },
		value: func(s Summary) Number { return s.LateBackfill.late() },
		shown: func(s Summary) bool { return s.LateBackfill.late() > 0 }},
	{Name: "worst late", About: "the latest of them, after its completion under fifo-backfill", note: true,
		text:  func(s Summary) string { return Human(s.LateBackfill.worst()) },
		value: func(s Summary) Number { return s.LateBackfill.worst() },
		shown: func(s Summary) bool { return s.LateBackfill.late() > 0 }},
	timeColumn("avg JCT", "mean completion time, finish - submit, of finished jobs", func(s Summary) Number { return s.AvgJCT }),
	timeColumn("median", "median completion time of finished jobs", func(s Summary) Number { return s.MedianJCT }),
	timeColumn("p99", "99th percentile of completion times, nearest rank", func(s Summary) Number { return s.P99JCT }),
	timeColumn("makespan", "last completion - first submission", func(s Summary) Number { return s.Makespan }),
	{Name: "device-h", About: "device-hours held, including start costs",
		text:  func(s Summary) string { return s.DeviceHours.Fixed(0) },
		value: func(s Summary) Number { return s.DeviceHours }},
	{Name: "util", About: "share of the cluster's devices held, mean over the makespan",
		text:  func(s Summary) string { return s.Utilisation.Fixed(2) },
		value: func(s Summary) Number { return s.Utilisation }},
	countColumn("restarts", "running jobs stopped or moved", func(s Summary) int { return s.Restarts }, nil),
	countColumn("preempted", "restarts that left the job without devices",
		func(s Summary) int { return s.Preemptions }, func(s Summary) bool { return s.Preemptions > 0 }),
	countColumn("failures", "times a job lost its devices because a node went down",
		func(s Summary) int { return s.Failures }, func(s Summary) bool { return s.Failures > 0 }),
	countColumn("evicted", "restarts because a node went down with notice, or a quota was reclaimed",
		func(s Summary) int { return s.Evictions }, func(s Summary) bool { return s.Evictions > 0 }),
	countColumn("reclaimed", "times a job lost its devices because spot capacity was taken back",
		func(s Summary) int { return s.Reclaims }, func(s Summary) bool { return s.Reclaims > 0 }),
	{Name: "lost-h", About: "device-hours that failures undid",
		text:  func(s Summary) string { return s.LostDeviceHours.Fixed(0) },
		value: func(s Summary) Number { return s.LostDeviceHours },
		shown: func(s Summary) bool { return s.LostDeviceHours > 0 }},
	{Name: "exact", About: "share of the truth's look-ups answered by a measurement; the others are interpolated or from a model",
		text:  func(s Summary) string { return exactShare(s).Fixed(2) },
		value: exactShare,
		shown: func(s Summary) bool { return s.Lookups != nil }},
	learnedColumn("belief error", "mean relative error of a learning belief's step times, estimated before they were observed",
		func(l *Learned) Number { return l.MAPE }),
	learnedColumn("JCT cost", "share by which the mean completion time exceeds that with perfect belief",
		func(l *Learned) Number { return l.CostAvgJCT }),
	learnedColumn("makespan cost", "share by which the makespan exceeds that with perfect belief",
		func(l *Learned) Number { return l.CostMakespan }),
	gapColumn("gap", "share by which a decision's cost may exceed the least cost if all times are as the policy assumes, a proven bound; mean over decisions",
		func(g *Gaps) Number { return g.Mean }),
	gapColumn("worst gap", "the largest gap of a decision", func(g *Gaps) Number { return g.Worst }),
}

func learnedColumn(name, about string, f func(*Learned) Number) summaryColumn {
	return shareColumn(name, about, func(s Summary) bool { return s.Learned != nil }, func(s Summary) Number { return f(s.Learned) })
}

func gapColumn(name, about string, f func(*Gaps) Number) summaryColumn {
	return shareColumn(name, about, func(s Summary) bool { return s.Gaps != nil }, func(s Summary) Number { return f(s.Gaps) })
}

// shareColumn shows a share in per cent, "-" for runs without one.
func shareColumn(name, about string, has func(Summary) bool, f func(Summary) Number) summaryColumn {
	value := func(s Summary) Number {
		if !has(s) {
			return Undefined()
		}
		return f(s)
	}
	return summaryColumn{Name: name, About: about, note: true, value: value, shown: has,
		text: func(s Summary) string {
			if !value(s).Defined() {
				return "-"
			}
			return (100 * value(s)).Fixed(1) + " %"
		}}
}

func exactShare(s Summary) Number {
	if s.Lookups == nil {
		return Undefined()
	}
	l := s.Lookups
	return Number(float64(l.Exact) / float64(l.Exact+l.Interpolated+l.Modelled))
}

func countColumn(name, about string, f func(Summary) int, shown func(Summary) bool) summaryColumn {
	return summaryColumn{Name: name, About: about, shown: shown,
		text:  func(s Summary) string { return strconv.Itoa(f(s)) },
		value: func(s Summary) Number { return Number(f(s)) }}
}

func timeColumn(name, about string, f func(Summary) Number) summaryColumn {
	return summaryColumn{Name: name, About: about, value: f,
		text: func(s Summary) string { return Human(f(s)) }}
}
