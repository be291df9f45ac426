// Package gavel holds the policies of Gavel (Narayanan et al., OSDI 2020) and those it
// compares with: an Objective computes for each job the fraction of time on each type
// of devices, and Rounds turns fractions into leases.
//
// shares.go is the input of an objective, program.go its linear program, books.go the
// account of time owed and received, leases.go the assignment of devices. sharing.go
// and pairs.go are about two jobs on the same devices.
//
// Start with throughput.go, rounds.go and leases.go.
package gavel
