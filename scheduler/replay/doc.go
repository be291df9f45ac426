// Package replay applies recorded decisions of another simulator and compares their effects: the batches of jobs,
// their progress, and what a policy would have decided instead. Equal averages can hide differences that this
// comparison shows.
//
// Read policy.go, rounds.go (reads the record) and replay_test.go first.
package replay
