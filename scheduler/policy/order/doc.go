// Package order holds the policies that are an order of jobs: each job runs as it was
// submitted, and the order says which runs first.
//
// Ordered starts jobs by arrival and stops none. Preemptive goes through the jobs by
// a key, and stops jobs from the end of the order for those before them.
//
// Start with las.go, ranked.go and queue.go.
package order
