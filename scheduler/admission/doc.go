// Package admission holds the rules that decide which jobs enter the system. Jobs that
// do not enter wait outside, where policies do not see them.
//
// Start with admission.go, load.go and guarantee.go.
package admission
