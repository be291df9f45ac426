// Package bench tests Pacer as a whole on published data: the accuracy of performance
// models, other simulators job by job, scheduling studies, and end-to-end benchmarks.
// It has tests only. The data is not part of the repository: tests look for it in the
// directory that PACER_SHARED names.
//
// Start with accuracy_test.go, rubick_sim_test.go and experiments_test.go.
package bench
