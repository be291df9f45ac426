// Package stats holds statistics that several packages compute in the same way.
//
// Start with stats.go, which is the whole package.
package stats
