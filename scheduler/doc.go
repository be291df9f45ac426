// Package scheduler defines the parts of a scheduler: a Policy turns a Snapshot of cluster
// and jobs into a Decision, with the speeds that an Oracle predicts.
//
// Start with scheduler.go (the interfaces), snapshot.go (input and output of a policy) and
// ledger.go (the state that snapshots are views of). Policies are in policy/, placers in
// place/, the simulator is sim/. schedulertest/ has the tests that every policy must pass.
package scheduler
