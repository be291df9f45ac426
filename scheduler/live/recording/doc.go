// Package recording keeps what a live.Controller saw and did in a file, for replay in the
// simulator: which jobs were submitted, where each ran and until when, and which nodes were down.
//
// A Writer appends a line of JSON for every observation that differs from the one before. Read
// makes jobs, a cluster and its outages of the lines. Calibrate gives each job the work that
// it turned out to have, and Result is the run as it was, for comparison.
//
// Start with line.go (the format), then writer.go and read.go.
package recording
