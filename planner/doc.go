// Package planner turns a performance model into answers: which plan is best
// for given devices, and how throughput grows with them.
//
// Start with oracle.go (what is asked and answered), planner.go (how
// candidates are judged) and then the spaces they come from: enumerate.go
// (every legal plan) and measured.go (those that have been run). legal.go
// names the rules of the first; explain.go says what was missed when nothing
// fits; curve.go grows the devices.
package planner
