// Package sia holds Sia (Jayaram Subramanya et al., SOSP 2023): an integer program chooses
// a configuration for each job, a number of devices of one type, by normalised goodput.
//
//	Cell   a configuration of a job with its goodput
//	Row    a job with its cells and their costs, a row of the paper's goodput matrix
//	Space  the cells of jobs
//
// choose.go solves the integer program, place.go places jobs, weigh.go evaluates the
// decisions of another scheduler by Sia's objective. Policy pacer uses Space and Choose.
//
// Start with sia.go, choose.go and place.go.
package sia
