// Package livetest has a cluster in memory for tests of package live, with the faults of real
// ones: stale observations, conflicts, writes that fail or succeed without an answer, lost
// nodes, deleted jobs.
//
// Start with cluster.go.
package livetest
