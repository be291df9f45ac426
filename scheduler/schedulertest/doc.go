// Package schedulertest tests schedulers.
//
//   - A World (world.go) is a table of configurations with their speeds. It serves as
//     truth and, with errors, as oracle.
//   - Conformance (conformance.go) is the suite that every policy must pass on random
//     cases (case.go, paramserver.go); ConformAdmission (admission.go) is that of
//     admission rules.
//   - A Recount (recount.go) computes the result of a run from its events alone and
//     compares it with the simulator's.
//   - Scenarios (scenario.go) runs transcripts of decisions and runs.
//
// Start with conformance.go.
package schedulertest
