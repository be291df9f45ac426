// Package gavel has the parts in which the simulator of Gavel (Narayanan et al., OSDI
// 2020; stanford-futuredata/gavel at commit c4fa400) differs from Pacer.
//
// Start with engine.go (its rounds), policy.go (what policies do otherwise) and
// type_by_type.go (how fractions of time become rounds).
package gavel
