// Package measured predicts by looking up measurements. The simulator uses it as ground truth when a job's step
// times were all measured.
//
// Start with table.go (exact look-up), then nearest.go (interpolation between configurations) and servers.go
// (jobs with parameter servers).
package measured
