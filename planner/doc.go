// Package planner turns a performance model into answers: which plan is best
// for given devices, and how throughput grows with them.
//
// Start with oracle.go (what is asked and answered), planner.go (how) and
// space.go (which plans are considered).
package planner
