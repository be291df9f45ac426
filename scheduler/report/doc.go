// Package report turns simulated runs into figures: summaries, per-job rows,
// tables and a page of charts.
//
// Start with summary.go, which says what each figure means; table.go, data.go
// and html.go write it out. jobs.go and events.go have the columns of files with a
// row per job or event (FORMAT.md), fairness.go the definition of rho, gantt.go who
// held which devices.
//
// A Score says which jobs count. Simulated times are seconds since the trace
// began, written exactly to the nanosecond. Everything written is a function of
// the results, so equal runs give equal bytes; the one exception is elapsed_s,
// the wall time of the run, which only JSON and CSV carry.
package report
