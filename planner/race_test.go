//go:build race

package planner_test

// problems is how many of so many random ones are tried: under the race detector
// a tenth, for it looks at goroutines, not at answers.
func problems(n int) int { return n / 10 }
