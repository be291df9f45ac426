//go:build !race

package planner_test

// problems is how many of so many random ones are tried: all.
func problems(n int) int { return n }
