// Package replay imposes decisions that were recorded elsewhere and compares all
// that follows from them: what jobs do with what they are given, how far they get,
// and what a policy would have decided instead. Where averages agree by luck, this
// does not.
//
// Start with policy.go; rounds.go reads the record.
package replay
