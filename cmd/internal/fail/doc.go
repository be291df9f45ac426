// Package fail gives errors exit codes: wrong usage, no answer, done in part.
//
// Start with fail.go.
package fail
