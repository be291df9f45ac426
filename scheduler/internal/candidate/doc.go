// Package candidate lists the configurations a job can run in: group of nodes, plan,
// shape and predicted speed. Belief asks the oracle and remembers the answers.
//
// Start with belief.go, curve.go and guess.go.
package candidate
