// Package policy holds the scheduling policies, one per file, each registered
// under its name.
//
// Start with registry.go and ordered.go; fifo.go is the smallest policy and
// rubick.go the one that chooses plans and sizes. belief.go turns the oracle
// into what policies compare: for every kind of job and group of nodes, the
// ways to run it and how fast each is believed to be. To add a queue order,
// write a comparison and register Ordered with it.
//
// Policies that share types of devices by fractions of time are an Objective
// each (shares.go; gavel_las.go is one), which Rounds turns into leases: books.go
// keeps who is owed what, leases.go gives devices away, menus.go says what jobs
// may have, and rounds_gavel.go does it as the published simulator. Where two jobs
// may share devices gavel_sharing.go says which, gavel_pairs.go what a programme
// makes of it, and shared_rounds.go and shared_leases.go give the devices away.
package policy
