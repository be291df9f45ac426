// Package drift finds the date since which measured step times differ from earlier ones, and the part of a step that
// changed.
//
// Start with drift.go: Find compares every date and part with no change by their Bayes factor.
package drift
