// Package importer stores the measurements of a data set and reports the rows that cannot be used.
//
// Start with importer.go (Store).
package importer
