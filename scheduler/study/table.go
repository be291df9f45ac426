package study

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Table returns rows as text: means with half their interval, the mean difference from
// the baseline, and the ratio to the lower bound. Empty columns are left out.
func (s *Study) Table(rows []Row) report.Table {
	var t report.Table
	t.Rows = make([][]string, len(rows))
	for _, c := range s.columns(rows) {
		t.Header = append(t.Header, c.name)
		for i, r := range rows {
			t.Rows[i] = append(t.Rows[i], c.text(r))
		}
	}
	return t
}

type column struct {
	name string
	text func(Row) string
}

func (s *Study) columns(rows []Row) []column {
	var out []column
	add := func(shown bool, name string, text func(Row) string) {
		if shown {
			out = append(out, column{name, text})
		}
	}
	count := func(f func(Row) int) func(Row) string { return func(r Row) string { return strconv.Itoa(f(r)) } }
	anyRow := func(f func(Row) bool) bool { return slices.ContainsFunc(rows, f) }
	bounded := anyRow(func(r Row) bool { return r.OverBound.AvgJCT.Mean.Defined() })
	add(len(s.Workloads) > 1, "workload", func(r Row) string { return r.Workload })
	add(len(s.Loads) > 0, "load", func(r Row) string { return r.Load.String() })
	add(true, "policy", func(r Row) string { return r.Scheduler })
	add(anyRow(func(r Row) bool { return r.Failed > 0 }), "failed", count(func(r Row) int { return r.Failed }))
	add(anyRow(func(r Row) bool { return r.Unfinished > 0 }), "unfinished", count(func(r Row) int { return r.Unfinished }))
	add(anyRow(func(r Row) bool { return r.Rejected > 0 }), "rejected", count(func(r Row) int { return r.Rejected }))
	add(anyRow(func(r Row) bool { return r.LateBackfill.Jobs.Mean > 0 }), "late", func(r Row) string { return r.LateBackfill.Jobs.Mean.Fixed(1) })
	add(anyRow(func(r Row) bool { return r.LateBackfill.Jobs.Mean > 0 }), "worst late", func(r Row) string { return report.Human(r.LateBackfill.WorstSec) })
	add(true, "avg JCT", func(r Row) string { return times(r.AvgJCT) })
	add(len(s.Schedulers) > 1, "vs baseline", func(r Row) string { return s.against(r, r.Baseline.AvgJCT) })
	add(bounded, "x bound", func(r Row) string { return factor(r.OverBound.AvgJCT) })
	add(true, "p99 JCT", func(r Row) string { return times(r.P99JCT) })
	add(true, "makespan", func(r Row) string { return times(r.Makespan) })
	add(bounded, "x bound", func(r Row) string { return factor(r.OverBound.Makespan) })
	return out
}

// times writes an interval of seconds: "1 h 02 m ± 3 m 10 s".
func times(i report.Interval) string {
	if half := i.HalfWidth(); half.Defined() {
		return report.Human(i.Mean) + " ± " + report.Human(half)
	}
	return report.Human(i.Mean)
}

// against writes a difference from the baseline.
func (s *Study) against(r Row, i report.Interval) string {
	if r.Scheduler == r.ComparedWith || !i.Mean.Defined() {
		return "-"
	}
	if i.Mean >= 0.05 {
		return "+" + times(i)
	}
	return times(i)
}

func factor(i report.Interval) string { return i.Mean.Fixed(2) }

// Failures names the schedulers with failed runs, each with the reason of the first.
func (s *Study) Failures(rows []Row) []string {
	var out []string
	for _, r := range rows {
		if r.Failed > 0 {
			where := r.Workload
			if r.Load.Defined() {
				where += " at load " + r.Load.String()
			}
			out = append(out, fmt.Sprintf("%s on %s, %d of %d runs: %s", r.Scheduler, where, r.Failed, r.Failed+r.Seeds, r.Error))
		}
	}
	return out
}
