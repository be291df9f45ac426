// Package gavel holds the policies of Gavel (Narayanan et al., OSDI 2020) and the
// baselines it compares with. An Objective computes the allocation X: for each job the
// fraction of time on each type of devices. Rounds turns fractions into leases.
//
//	candidate  a group of nodes and a device count for a job, with its steps/s there
//	level      throughput normalised as in section 4.1, see Shares.level
//	owed       time that a job should have had on a candidate by its fractions
//	received   time that it had
//	deficit    owed / received, the priority in the round mechanism (section 5)
//	lease      devices of a job until the end of the round
//	kind       jobs with the same model, batch, plan and devices
//
// One file per policy. The input and output of an objective is in shares.go, the linear
// program in program.go, the account of owed and received time in deficits.go, the
// assignment of devices in leases.go and leases_place.go. Space sharing of two jobs is in
// sharing.go (speeds of pairs), pairs.go (its part of the linear program) and gandiva.go.
//
// Start with throughput.go, rounds.go and leases.go.
package gavel
