// Package console writes to terminals and files: results as table, JSON or CSV, numbers for
// people and for machines, progress of long runs, files that appear complete or not at all.
//
// Start with console.go (the two output streams of a run and its progress line), result.go
// (a result in each output format) and file.go.
package console
