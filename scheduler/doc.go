// Package scheduler defines the parts of a scheduler: a Policy turns a Snapshot of cluster
// and jobs into a Decision, with the speeds that an Oracle predicts.
//
// Terms:
//
//   - A Grant gives a job devices and an execution plan; a Slot is its part on a node.
//   - A Decision is the set of grants that jobs should have, or the changes of it.
//   - An Inventory counts the free devices of each node.
//   - An Admission decides which jobs enter the queue; a Placer finds free devices for a
//     shape.
//   - The engine is the program that calls a policy and applies its decisions: the simulator
//     in sim/, or the controller of a real cluster in live/.
//
// Start with scheduler.go (the interfaces), snapshot.go (input and output of a policy) and
// ledger.go (the state behind snapshots). Policies are in policy/, admission rules in
// admission/, placers in place/. schedulertest/ has the tests that
// every policy must pass.
package scheduler
