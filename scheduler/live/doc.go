// Package live drives a real cluster by a scheduler.Policy. A Cluster is the engine, such as
// Slurm or Kubernetes; this package has what all engines share.
//
// A Controller repeats two steps. Both start from what the cluster says, never from what was
// done before, so that a controller which is killed at any moment goes on where it was.
//
//   - Decide: if jobs arrived or ended, nodes changed, or the policy asked to be woken, the
//     policy decides on a snapshot of the targets: the devices and plans decided before. The
//     decision is checked by scheduler.Check, and each changed target is written beside its
//     job as a Record, before anything is done.
//   - Reconcile: each job takes one idempotent step towards its target: held, released,
//     running, stopping, held. A job starts only when its devices are really free.
//
// Jobs of other users, paused jobs and jobs on draining nodes are usage, and are never
// touched. A policy that fails leaves the targets as they are. When the controller ends, jobs
// run on.
//
// Start with cluster.go (what an engine implements), record.go (what is kept beside a job)
// and controller.go (the loop).
package live
