// Package spacefill chooses points to measure by distance, for when the intervals of a performance model do not say
// where it is wrong.
//
// Start with evidence.go (when to do so), then space.go (the distances).
package spacefill
