// Package scratch makes directories for what a process needs while it lives, and
// removes those whose process was killed before it could.
//
// Start with scratch.go; owner_flock.go is how a directory tells whether its
// process lives.
package scratch
