// Package measured predicts by looking up measurements. It is the truth of
// simulations that rest on measured step times alone.
//
// Start with table.go (exact look-up), then nearest.go (interpolation between
// configurations) and servers.go (jobs with parameter servers).
package measured
