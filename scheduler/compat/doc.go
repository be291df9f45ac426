// Package compat reproduces the semantics of other simulators, so that their
// published results can be compared job by job.
//
// A quirk is one difference of another simulator from Pacer. Installing it replaces a part
// of the run: a rule of the engine, a placer, a limit on measured configurations, or a part
// of a policy. Packages blox, gavel, pollux, sia and dl2 have these parts; the engine and
// the policies do not depend on them. A mode is another simulator with its quirks.
//
// Start with quirks.go (all quirks with the parts they install), modes.go (the modes) and
// parts.go (the parts of a run).
package compat
