package report

import (
	"fmt"
	"io"
	"strconv"
)

// WriteTable writes the runs as a plain-text table, times in the two largest
// units. Columns that say nothing are left out: jobs when all finished,
// unfinished, rejected, preempted and lost to failures when there are none, the share of exact
// look-ups when none were counted. Wall times are not shown. Columns few know are
// explained below.
func WriteTable(w io.Writer, runs []Summary) error {
	var t Table
	for _, c := range summaryColumns {
		if c.shown != nil && !anyRun(runs, c.shown) {
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
	for _, c := range summaryColumns {
		if c.note && anyRun(runs, c.shown) {
			if _, err := fmt.Fprintf(w, "%s: %s\n", c.Name, c.About); err != nil {
				return err
			}
		}
	}
	return nil
}

func anyRun(runs []Summary, f func(Summary) bool) bool {
	for _, s := range runs {
		if f(s) {
			return true
		}
	}
	return false
}

// summaryColumn is one column of the tables for people, in text and HTML.
type summaryColumn struct {
	Name  string
	About string // what the figure is, for HTML
	note  bool   // About is told in text too; shown is not nil
	text  func(Summary) string
	value func(Summary) Number // to sort by, nil for the policy
	shown func(Summary) bool   // nil = always; else only if any run says so
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
	countColumn("broken", "guaranteed jobs that were refused, did not finish, or missed their deadline",
		func(s Summary) int { return s.BrokenGuarantees }, func(s Summary) bool { return s.BrokenGuarantees > 0 }),
	timeColumn("avg JCT", "mean completion time, finish - submit, of finished jobs", func(s Summary) Number { return s.AvgJCT }),
	timeColumn("median", "median completion time of finished jobs", func(s Summary) Number { return s.MedianJCT }),
	timeColumn("p99", "99th percentile of completion times, nearest rank", func(s Summary) Number { return s.P99JCT }),
	timeColumn("makespan", "last completion - first submission", func(s Summary) Number { return s.Makespan }),
	{Name: "device-h", About: "device-hours held, start costs included",
		text:  func(s Summary) string { return fixed(s.DeviceHours, 0) },
		value: func(s Summary) Number { return s.DeviceHours }},
	{Name: "util", About: "share of the cluster's devices held, mean over the makespan",
		text:  func(s Summary) string { return fixed(s.Utilisation, 2) },
		value: func(s Summary) Number { return s.Utilisation }},
	countColumn("restarts", "running jobs stopped or moved", func(s Summary) int { return s.Restarts }, nil),
	countColumn("preempted", "restarts after which the job held nothing",
		func(s Summary) int { return s.Preemptions }, func(s Summary) bool { return s.Preemptions > 0 }),
	countColumn("failures", "times a job lost its devices because a node went down",
		func(s Summary) int { return s.Failures }, func(s Summary) bool { return s.Failures > 0 }),
	{Name: "lost-h", About: "device-hours undone by failures",
		text:  func(s Summary) string { return fixed(s.LostDeviceHours, 0) },
		value: func(s Summary) Number { return s.LostDeviceHours },
		shown: func(s Summary) bool { return s.LostDeviceHours > 0 }},
	{Name: "exact", About: "share of the truth's look-ups that a measurement answered; the others are between measurements or a model's",
		text:  func(s Summary) string { return fixed(exactShare(s), 2) },
		value: exactShare,
		shown: func(s Summary) bool { return s.Lookups != nil }},
	learnedColumn("belief off", "mean error of what was believed of step times before they were seen, by a belief that learns",
		func(l *Learned) Number { return l.MAPE }),
	learnedColumn("costs JCT", "by how much the mean completion time exceeds that with perfect belief",
		func(l *Learned) Number { return l.CostAvgJCT }),
	learnedColumn("costs makespan", "by how much the makespan exceeds that with perfect belief",
		func(l *Learned) Number { return l.CostMakespan }),
	gapColumn("gap", "by how much a decision's plan may cost more than the best there is, proven; mean over decisions",
		func(g *Gaps) Number { return g.Mean }),
	gapColumn("worst gap", "the same of the worst decision", func(g *Gaps) Number { return g.Worst }),
}

func learnedColumn(name, about string, f func(*Learned) Number) summaryColumn {
	return shareColumn(name, about, func(s Summary) bool { return s.Learned != nil }, func(s Summary) Number { return f(s.Learned) })
}

func gapColumn(name, about string, f func(*Gaps) Number) summaryColumn {
	return shareColumn(name, about, func(s Summary) bool { return s.Gaps != nil }, func(s Summary) Number { return f(s.Gaps) })
}

// shareColumn is a share, in per cent, of the runs that have one.
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
			return fixed(100*value(s), 1) + " %"
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

// fixed writes n with so many decimals, "-" if it is undefined.
func fixed(n Number, decimals int) string {
	if !n.Defined() {
		return "-"
	}
	return strconv.FormatFloat(float64(n), 'f', decimals, 64)
}
