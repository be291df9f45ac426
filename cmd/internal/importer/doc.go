// Package importer is the command pacer import: it stores the measurements of a data set, a file
// or a log, and reports the rows that cannot be used.
//
// Start with importer.go (Store), then command.go and log.go.
package importer
