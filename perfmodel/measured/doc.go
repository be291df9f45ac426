// Package measured predicts by looking measurements up: the truth of a
// simulation that should rest on what was measured and nothing else.
//
// Start with table.go; nearest.go adds answers for configurations close to
// measured ones.
package measured
