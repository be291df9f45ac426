// Package trace reads job traces as workloads for the simulator: published traces
// of clusters and of other simulators, and Pacer's own CSV. One file per format
// (philly.go, helios.go, acme.go, ...), all listed in format.go.
//
//	Open             a trace as a Workload, jobs sorted by submission
//	Formats          the formats with license, URL and commit of the published trace
//	Window           a part of a workload, by time or by job number
//	ScaleLoad        the same jobs, submitted faster or more slowly
//	GenerateGavel    the jobs that Gavel's simulator draws; likewise GenerateDL2, GenerateOnes
//
// Start with workload.go, then format.go and helios.go, the shortest format.
// input.go opens files, archives and directories; row.go reads cells.
//
// An invalid row yields a *datasets.RowError, and reading continues. A valid row
// without a job to schedule is an error that wraps ErrNoJob, a remark one that
// wraps ErrNote; both become Workload.Warnings.
package trace
