// Package stats holds the order statistics, the width of 90 % intervals and the random streams that several
// packages use.
//
// Start with order.go (medians and quantiles) and stream.go (random numbers by seed and name).
package stats
