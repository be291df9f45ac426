// Package pacer holds the policy of Pacer: it plans all jobs forward in time and does
// what the plan does first. docs/design/joint-scheduling.md states the problem.
//
// Start with pacer.go, deadlines.go and elastic.go.
package pacer
