// Package compose reads scheduler files. Such a file sets the policy with its options, the
// admission rule, the placer, the length of rounds, and the simulator (compat) to
// reproduce.
//
// Start with Read in compose.go. It returns the values of the command line's flags, so a
// scheduler in a file and one on the command line are the same.
package compose
