// Package report turns simulated runs into figures: summaries, per-job rows,
// tables and a page of charts.
//
// Terms:
//
//   - A Score selects the jobs that count: only they enter the figures.
//   - JCT is the job completion time, completion - submission.
//   - The makespan runs from the first submission to the last completion.
//   - rho is finish-time fairness, the JCT over the run time on an equal share of
//     the cluster; fairness.go has the definition.
//   - The belief is the estimate of step times that a policy works with.
//
// Start with summary.go, which defines each figure. table.go, data.go and html.go
// write figures as text, JSON or CSV, and HTML. jobs.go and events.go declare the
// columns of the files with a row per job or per event, see FORMAT.md. gantt.go
// records which job held which devices. diff.go compares the jobs of two runs.
//
// Simulated times are seconds since the trace began, exact to the nanosecond.
// Equal results give equal bytes, except for elapsed_s, the wall time of the run,
// which only JSON and CSV contain.
package report
