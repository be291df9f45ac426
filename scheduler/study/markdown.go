package study

import (
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Markdown returns rows as a Markdown table in seconds: means with half their interval,
// and in parentheses the ratio to the best lower bound; ratios to the baseline with
// intervals; and below, the ratios over all workloads, see Overall. Empty columns are
// left out.
func (s *Study) Markdown(rows []Row) string {
	var t report.Table
	t.Rows = make([][]string, len(rows))
	columns := s.markdownColumns(rows)
	for _, c := range columns {
		t.Header = append(t.Header, c.name)
		for i, r := range rows {
			t.Rows[i] = append(t.Rows[i], c.text(r))
		}
	}
	for _, w := range s.Overall(rows) {
		var line []string
		for _, c := range columns {
			line = append(line, c.overall(w))
		}
		t.Rows = append(t.Rows, line)
	}
	return t.Markdown()
}

// markdownColumn is a column, with its text for rows and for all workloads together.
type markdownColumn struct {
	name    string
	text    func(Row) string
	overall func(Whole) string
}

func (s *Study) markdownColumns(rows []Row) []markdownColumn {
	var out []markdownColumn
	add := func(shown bool, name string, text func(Row) string, overall func(Whole) string) {
		if shown {
			out = append(out, markdownColumn{name, text, overall})
		}
	}
	none := func(Whole) string { return "" }
	anyRow := func(f func(Row) bool) bool { return slices.ContainsFunc(rows, f) }
	compared := anyRow(func(r Row) bool { return r.Scheduler != r.ComparedWith })
	add(len(s.Workloads) > 1, "workload", func(r Row) string { return r.Workload }, func(Whole) string { return "all" })
	add(len(s.Loads) > 0, "load", func(r Row) string { return r.Load.String() }, func(w Whole) string { return w.Load.String() })
	add(true, "policy", func(r Row) string { return r.Scheduler }, func(w Whole) string { return w.Scheduler })
	add(anyRow(func(r Row) bool { return r.Finished < r.Jobs }), "finished", func(r Row) string { return fmt.Sprintf("%d of %d", r.Finished, r.Jobs) }, none)
	add(true, "average JCT", func(r Row) string { return inSeconds(r.AvgJCT) + bounded(r.OverBound.AvgJCT) }, none)
	add(compared, s.ofBaseline(rows), func(r Row) string { return share(r, r.OfBaseline.AvgJCT) }, func(w Whole) string { return interval(w.OfBaseline.AvgJCT) })
	add(true, "p99", func(r Row) string { return inSeconds(r.P99JCT) }, none)
	add(true, "longest", func(r Row) string { return inSeconds(r.MaxJCT) }, none)
	add(true, "makespan", func(r Row) string { return inSeconds(r.Makespan) + bounded(r.OverBound.Makespan) }, none)
	add(compared, s.ofBaseline(rows), func(r Row) string { return share(r, r.OfBaseline.Makespan) }, func(w Whole) string { return interval(w.OfBaseline.Makespan) })
	add(true, "restarts per job", func(r Row) string { return (report.Number(r.Restarts) / report.Number(r.Jobs)).Fixed(2) }, none)
	add(true, "device-hours", func(r Row) string { return r.DeviceHours.Mean.Fixed(0) }, none)
	add(anyRow(func(r Row) bool { return r.Late.Mean.Defined() }), "guaranteed late", func(r Row) string { return around(r.Late, 1) }, none)
	add(anyRow(func(r Row) bool { return r.MAPE.Mean.Defined() }), "off by", func(r Row) string { return percent(r.MAPE.Mean) }, none)
	return out
}

// ofBaseline names the baseline in column heads.
func (s *Study) ofBaseline(rows []Row) string {
	for _, r := range rows {
		if r.ComparedWith != s.Baseline {
			return "of its baseline"
		}
	}
	return "of " + s.Baseline
}

// inSeconds writes an interval of seconds: "1012 ± 20 s".
func inSeconds(i report.Interval) string {
	if !i.Mean.Defined() {
		return "-"
	}
	return around(i, 0) + " s"
}

// around writes a mean with half the width of its interval: "1012 ± 20", or "1012"
// without an interval.
func around(i report.Interval, decimals int) string {
	half := i.HalfWidth()
	if !half.Defined() {
		return i.Mean.Fixed(decimals)
	}
	return i.Mean.Fixed(decimals) + " ± " + half.Fixed(decimals)
}

// bounded writes the ratio of a figure to its lower bound, "" if unknown.
func bounded(i report.Interval) string {
	if !i.Mean.Defined() {
		return ""
	}
	return " (" + i.Mean.Fixed(2) + ")"
}

// share writes the ratio of a figure to that of the baseline.
func share(r Row, i report.Interval) string {
	if r.Scheduler == r.ComparedWith {
		return "-"
	}
	return interval(i)
}

// interval writes a ratio with its interval: "0.431 (0.392 to 0.461)".
func interval(i report.Interval) string {
	if !i.Lo.Defined() || !i.Hi.Defined() {
		return i.Mean.Fixed(3)
	}
	return fmt.Sprintf("%s (%s to %s)", i.Mean.Fixed(3), i.Lo.Fixed(3), i.Hi.Fixed(3))
}

func percent(n report.Number) string {
	if !n.Defined() {
		return "-"
	}
	return (100 * n).Fixed(1) + " %"
}
