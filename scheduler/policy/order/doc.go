// Package order holds the queueing policies. Each job runs with the plan and device
// count it was submitted with; a policy only decides which jobs run first.
//
// Ordered starts jobs by arrival and never preempts (fifo, fifo-backfill). Preemptive
// orders jobs by a key and preempts jobs from the end of the order for jobs before them
// (edf, srtf, las, priority, tiresias, gittins).
//
// Start with las.go, ranked.go and queue.go.
package order
