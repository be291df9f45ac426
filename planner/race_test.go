//go:build race

package planner_test

// problems returns how many of n random requests to try: a tenth under the race
// detector, which checks goroutines and not answers.
func problems(n int) int { return n / 10 }
