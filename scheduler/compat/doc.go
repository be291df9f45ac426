// Package compat reproduces the semantics of other simulators, so that their
// published results can be compared job by job.
//
// A quirk is one departure of another simulator from Pacer's semantics. Installing
// it replaces a part of the run: a rule of the engine, a placer, a limit of what was
// measured, or a part of a policy. Packages blox, gavel, pollux, sia and dl2 have
// these parts. The engine and the policies know none of them.
//
// Start with quirks.go (every quirk and the part it installs), modes.go (the quirks
// of each simulator) and parts.go (what a run is given).
package compat
