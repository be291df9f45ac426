// Package lookahead schedules jobs over time. It decides which running jobs keep
// their devices, and the order and configuration of all others, to minimize a sum of
// completion times.
//
// Terms:
//
//   - A task is a job to schedule. It may hold devices already.
//   - A candidate is a configuration in which a task can run: devices per node, host
//     resources and run time.
//   - A proposal is an order of the tasks to start or restart, and a candidate for each.
//   - A rollout computes the schedule and cost of a proposal on the nodes: now and
//     whenever a task ends, the tasks that fit start in the given order.
//   - A bound is a proven lower limit on the cost of every schedule.
//
// Start with problem.go, which has the input, the output and the objective; then
// rollout.go and search.go. The search begins with simple proposals and changes the
// best at random, first by simulated annealing (anneal.go), then accepting only
// improvements. With many tasks, prices of devices over time suggest proposals
// (guided.go, ascent.go). The prices also prove the bound (relaxed.go).
//
// This is a search for the resource-constrained project scheduling problem with
// parallel schedule generation (Kolisch and Hartmann, "Heuristic algorithms for the
// resource-constrained project scheduling problem", 1999); resources are nodes, and
// modes use different numbers of them.
package lookahead
