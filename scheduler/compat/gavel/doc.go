// Package gavel has the parts in which the simulator of Gavel (Narayanan et al., OSDI
// 2020; stanford-futuredata/gavel at commit c4fa400) differs from Pacer.
//
// Start with engine.go (the length of rounds), policy.go (variants of policies) and
// type_by_type.go (the round mechanism, which turns fractions of time into rounds).
// pair_rounds.go is that mechanism for jobs that share devices.
package gavel
