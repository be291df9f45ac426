// Package order holds the queueing policies. Each job runs with the plan and device
// count it was submitted with; a policy only decides which jobs run first.
//
// ArrivalOrder starts jobs by arrival and never preempts (fifo, fifo-backfill). Preemptive
// orders jobs by a key and preempts jobs from the end of the order for jobs before them
// (edf, srtf, las, priority, tiresias, gittins).
//
// Start with las.go, ranking.go and preemptive.go; queue.go keeps the order between decisions.
package order
