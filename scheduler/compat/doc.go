// Package compat says in what other simulators differ from Pacer's semantics,
// so that their published results can be compared job by job.
//
// Start with quirks.go, which names every difference and is the one place where
// it is described; mode.go puts quirks together; one file per simulator.
package compat
