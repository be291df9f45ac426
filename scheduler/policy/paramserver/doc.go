// Package paramserver holds policies for jobs that train with parameter servers, and their
// common parts.
//
//	Counts   numbers of replicas and parameter servers of a job
//	Speeds   predicted steps/s by Counts
//	Packing  assignment of replicas and servers (tasks) to nodes, from an empty cluster
//	Rule     fills a Packing; each policy is a Rule
//
// Policies: drf.go, tetris.go, order.go (fifo and srtf); optimus and dl2 are in packages
// of their own. settle.go turns a Packing into grants.
//
// Start with drf.go, policy.go and packing.go.
package paramserver
