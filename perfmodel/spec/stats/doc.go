// Package stats holds the statistics that packages on every floor compute alike.
//
// Start with stats.go, which is the whole package.
package stats
