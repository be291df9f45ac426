// Package builtin is the table of the policies that come with Pacer. Its tests run
// the conformance suite and the scenarios in testdata on each of them.
//
// Start with builtin.go, policy_test.go and ../registry.go.
package builtin
