// Package kubernetes is the engine for Jobs of Kubernetes: batch/v1 Jobs with the label
// pacer.dev/managed=true, submitted suspended.
//
// A job starts by one patch that sets plan, number of pods and devices per pod, and ends its
// suspension; it stops by being suspended. The patch names the version of the job that was
// observed, so that of two controllers one loses. The record is an annotation.
//
// A job on one node gets a node selector. On several nodes its pods have a scheduling gate,
// which is lifted together with a node selector for each pod: the scheduler of Kubernetes
// places every pod where the policy decided. The numbers of devices on these nodes are equal.
//
// JobSets, PyTorchJobs and TrainJobs are advised and not started (advised.go); podsets.go knows where each kind says what its
// pods request.
//
// Start with cluster.go (the engine), request.go (what a job says of itself), observe.go and
// write.go.
package kubernetes
