// Package compose reads schedulers written down in files: which policy, with which
// options, behind which admission rule, on which placement, in which rounds, with
// whose semantics.
//
// Read in compose.go is all there is. What it returns says the same as the flags of
// a simulation, so that a scheduler in a file and one on the command line are one
// thing.
package compose
